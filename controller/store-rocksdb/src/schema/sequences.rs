//! The step to schema 2: the names of all sequences that have records.
//!
//! Without them the records of a model that was removed shortly before a crash, and those of units that were
//! removed, could never be found again.

use periapt_store::StoreError;
use rocksdb::{DB, Direction, IteratorMode, WriteBatch};

use super::upgrade::Progress;
use crate::{
    database::{RECORDS, SEQUENCES},
    key,
};

/// Lists the next sequences: jumps from the first record of one to the first of the next.
pub(super) fn list(
    db: &DB,
    after: &[u8],
    limit: usize,
    writes: &mut WriteBatch,
) -> Result<Progress, StoreError> {
    let missing = || StoreError::Damaged("a column family is missing".into());
    let records = db.cf_handle(RECORDS).ok_or_else(missing)?;
    let sequences = db.cf_handle(SEQUENCES).ok_or_else(missing)?;
    let mut from = after.to_vec();
    for _ in 0..limit {
        let next = db.iterator_cf(records, IteratorMode::From(&from, Direction::Forward)).next();
        let next = next.transpose().map_err(|error| StoreError::Damaged(error.to_string()))?;
        let Some((record, _)) = next else { return Ok(Progress::Done) };
        let sequence = key::sequence_of(&record)
            .ok_or_else(|| StoreError::Damaged("a record belongs to no sequence".into()))?;
        writes.put_cf(sequences, sequence, []);
        from = key::after_all_with(sequence);
    }
    Ok(Progress::Until(from))
}
