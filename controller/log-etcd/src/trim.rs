//! Trimming a log.

use std::sync::atomic::Ordering;

use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp};
use periapt_log::{LogError, Term};

use crate::{
    Compaction,
    answers::{number, values},
    failure::Failure,
    shared::Shared,
};

/// The positions that one transaction deletes. Other writers wait for a transaction, so it must be short.
const STEP: u64 = 64;

/// The least number of etcd's revisions between two compactions. Each append and each renewal is a revision or none, so
/// a busy log compacts at every trim. A revision has up to one MiB, which etcd keeps until then.
const COMPACT_AFTER: i64 = 250;

impl Shared {
    /// Deletes entries up to a position, in steps. A trimming that was interrupted is completed by the next one.
    pub(crate) async fn trim(&self, term: Term, through: u64) -> Result<(), LogError> {
        let through = self.note_trimmed(term, through).await?;
        let first = GetOptions::new().with_range(self.keys.behind_entries()).with_keys_only().with_limit(1);
        let found = self
            .call(0, |mut member| {
                let (key, first) = (self.keys.entry(0), first.clone());
                async move { member.kv.get(key, Some(first)).await }
            })
            .await?;
        let found = found.kvs().first().and_then(|first| self.keys.position(first.key()));
        let mut behind = found.unwrap_or(through).min(through);
        let mut revision = 0;
        loop {
            behind = behind.saturating_add(STEP).min(through.saturating_add(1));
            revision = self.delete_before(term, behind).await?.max(revision);
            if behind > through {
                break;
            }
        }
        self.compact(revision).await;
        Ok(())
    }

    /// Notes that the entries up to a position, or to an earlier end, are trimmed. Returns what is trimmed then.
    async fn note_trimmed(&self, term: Term, through: u64) -> Result<u64, LogError> {
        loop {
            let answer = self
                .call(0, |mut member| {
                    let read = Txn::new().and_then(
                        [self.keys.term(), self.keys.end(), self.keys.trimmed()]
                            .map(|key| TxnOp::get(key, None)),
                    );
                    async move { member.kv.txn(read).await }
                })
                .await?;
            let mut found = values(&answer).into_iter();
            let now = number("term", found.next().flatten())?;
            let end = number("end", found.next().flatten())?;
            let trimmed = number("trimmed", found.next().flatten())?;
            if now != term.0 {
                return Err(LogError::Deposed(term));
            }
            let target = through.min(end);
            if target <= trimmed {
                return Ok(trimmed);
            }
            let answer = self
                .call(0, |mut member| {
                    let note = Txn::new()
                        .when([
                            self.is_term(term),
                            Compare::value(self.keys.trimmed(), CompareOp::Equal, trimmed.to_string()),
                        ])
                        .and_then([TxnOp::put(self.keys.trimmed(), target.to_string(), None)]);
                    async move { member.kv.txn(note).await }
                })
                .await?;
            if answer.succeeded() {
                return Ok(target);
            }
        }
    }

    /// Deletes the entries before a position, and their parts. Returns etcd's revision.
    async fn delete_before(&self, term: Term, behind: u64) -> Result<i64, LogError> {
        let answer = self
            .call(0, |mut member| {
                let (entries, parts) = (self.keys.entry(behind), self.keys.parts(behind));
                let delete = Txn::new().when([self.is_term(term)]).and_then([
                    TxnOp::delete(self.keys.entry(0), Some(DeleteOptions::new().with_range(entries))),
                    TxnOp::delete(self.keys.parts(0), Some(DeleteOptions::new().with_range(parts))),
                ]);
                async move { member.kv.txn(delete).await }
            })
            .await?;
        if !answer.succeeded() {
            return Err(LogError::Deposed(term));
        }
        Ok(answer.header().map_or(0, etcd_client::ResponseHeader::revision))
    }

    /// Asks for a compaction up to where etcd was at the trimming before, so that those who follow and lag a little find
    /// the history that they watch. One that fails is made up for after the next trimming.
    async fn compact(&self, revision: i64) {
        let before = self.trimmed_at.swap(revision, Ordering::Relaxed);
        let last = self.compacted_at.load(Ordering::Relaxed);
        if self.compaction == Compaction::ByOthers || before < last.saturating_add(COMPACT_AFTER) {
            return;
        }
        let compacted = self.call(0, |mut member| async move { member.kv.compact(before, None).await }).await;
        match compacted {
            Ok(_) | Err(Failure::Compacted) => self.compacted_at.store(before, Ordering::Relaxed),
            Err(failure) => {
                tracing::warn!(reason = %LogError::from(failure), "etcd's history was not compacted");
            }
        }
    }
}
