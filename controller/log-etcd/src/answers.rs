//! Answers of etcd to transactions.

use etcd_client::{KeyValue, TxnOpResponse, TxnResponse};
use periapt_log::LogError;

use crate::value::decode_number;

/// Returns the first value of each read of a transaction.
pub(crate) fn values(answer: &TxnResponse) -> Vec<Option<KeyValue>> {
    let reads = answer.op_responses().into_iter().filter_map(|answer| match answer {
        TxnOpResponse::Get(mut found) => Some(found.take_kvs().into_iter().next()),
        TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) | TxnOpResponse::Txn(_) => None,
    });
    reads.collect()
}

/// Reads the number of a key that each shard has.
pub(crate) fn number(name: &str, found: Option<KeyValue>) -> Result<u64, LogError> {
    match found {
        Some(found) => decode_number(name, found.value()),
        None => Err(LogError::Foreign(format!("the key {name} of the shard is gone"))),
    }
}
