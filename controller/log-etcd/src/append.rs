//! Appending entries, and confirming a term.

use bytes::Bytes;
use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use periapt_host_api::Revision;
use periapt_log::{LogError, Term};

use crate::{
    answers::{number, values},
    connect::Member,
    failure::Failure,
    shared::Shared,
    value::{PART, Stored, hex},
};

impl Shared {
    /// Appends an entry. The transaction compares the term and the last position, so it takes effect once, at its place
    /// and in its term, however often it is sent.
    pub(crate) async fn append(&self, term: Term, position: u64, entry: Bytes) -> Result<(), LogError> {
        let Some(before) = position.checked_sub(1) else {
            return Err(LogError::Taken(Revision(position)));
        };
        let stored = Stored::of(&entry)?;
        if let Stored::Parts { digest, .. } = &stored {
            self.put_parts(term, position, &hex(digest), &entry).await?;
        }
        let (key, value) = (self.keys.entry(position), stored.encode());
        let answer = self
            .call(value.len(), |mut member| {
                let append = Txn::new()
                    .when([
                        self.is_term(term),
                        Compare::value(self.keys.end(), CompareOp::Equal, before.to_string()),
                        Compare::create_revision(key.clone(), CompareOp::Equal, 0),
                    ])
                    .and_then([
                        TxnOp::put(key.clone(), value.clone(), None),
                        TxnOp::put(self.keys.end(), position.to_string(), None),
                    ])
                    .or_else([
                        TxnOp::get(key.clone(), None),
                        TxnOp::get(self.keys.term(), None),
                        TxnOp::get(self.keys.trimmed(), None),
                    ]);
                async move { member.kv.txn(append).await }
            })
            .await;
        let answer = match answer {
            // The member that carries the entry past the quota answers this as well, and has appended it.
            Err(Failure::Full) if self.has(position, &value).await? => return Ok(()),
            answer => answer?,
        };
        if answer.succeeded() {
            return Ok(());
        }
        let mut found = values(&answer).into_iter();
        let present = found.next().flatten();
        let (now, trimmed) =
            (number("term", found.next().flatten())?, number("trimmed", found.next().flatten())?);
        match present {
            Some(present) if present.value() == value => Ok(()),
            None if position <= trimmed => Err(LogError::Trimmed(Revision(trimmed))),
            _ if now != term.0 => Err(LogError::Deposed(term)),
            _ => Err(LogError::Taken(Revision(position))),
        }
    }

    /// Returns true if a position has the entry of this stored form, by a linearizable read.
    async fn has(&self, position: u64, value: &[u8]) -> Result<bool, Failure> {
        let key = self.keys.entry(position);
        let call = |mut member: Member| {
            let key = key.clone();
            async move { member.kv.get(key, None).await }
        };
        let found = self.call(value.len(), call).await?;
        Ok(found.kvs().first().is_some_and(|present| present.value() == value))
    }

    /// Writes the parts of a large entry. A term that is over writes none; the entry itself then says so.
    async fn put_parts(&self, term: Term, position: u64, name: &str, entry: &Bytes) -> Result<(), LogError> {
        for (number, part) in entry.chunks(PART).enumerate() {
            let answer = self
                .call(part.len(), |mut member| {
                    let put = Txn::new().when([self.is_term(term)]).and_then([TxnOp::put(
                        self.keys.part(position, name, number),
                        part,
                        None,
                    )]);
                    async move { member.kv.txn(put).await }
                })
                .await?;
            if !answer.succeeded() {
                break;
            }
        }
        Ok(())
    }

    /// Confirms by a linearizable read that the term is not over.
    pub(crate) async fn confirm(&self, term: Term) -> Result<(), LogError> {
        let found =
            self.call(0, |mut member| async move { member.kv.get(self.keys.term(), None).await }).await?;
        let now = number("term", found.kvs().first().cloned())?;
        if now == term.0 { Ok(()) } else { Err(LogError::Deposed(term)) }
    }

    /// Returns the last position. The read is linearizable.
    pub(crate) async fn end(&self) -> Result<u64, LogError> {
        let found =
            self.call(0, |mut member| async move { member.kv.get(self.keys.end(), None).await }).await?;
        number("end", found.kvs().first().cloned())
    }

    /// Returns the comparison that a term is not over.
    pub(crate) fn is_term(&self, term: Term) -> Compare {
        Compare::value(self.keys.term(), CompareOp::Equal, term.0.to_string())
    }
}
