//! The place where the writer makes batches durable: its own store, or the log that several controllers share.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_host_api::{Level, Revision, Timestamp};
use periapt_log::{
    AfterFailure, Content, EntryError, EntryId, Log, LogError, LogHead, NextEntry, Term, UnansweredCall,
};
use periapt_store::{Batch, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::RandomSource,
    replication::{AnswerObserver, RecentEntries},
};

/// The pause between attempts to reach a log that does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The place where the writer makes batches durable.
pub(crate) enum Journal {
    /// The controller's own store.
    Store,
    /// The log that several controllers share.
    Log(LogJournal),
}

/// The log, as the controller that leads writes it.
pub(crate) struct LogJournal {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) term: Term,
    pub(crate) head: Mutex<LogHead>,
    pub(crate) recent: RecentEntries,
    pub(crate) random: Arc<dyn RandomSource>,
    pub(crate) observer: Option<Arc<dyn AnswerObserver>>,
    /// Cancelled when the controller stops.
    pub(crate) stop: CancellationToken,
}

/// The reason why a batch was not written, or may not have been.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another controller leads. The batch had no effect, and never will have one.
    #[error("another controller leads since term {0}")]
    Deposed(Term),
    /// Another controller leads, and the log does not tell any more whether it had the batch.
    #[error("another controller leads since term {0}, and it is not known whether the log had the batch")]
    Overtaken(Term),
    /// The controller stops before the log has answered.
    #[error("the log did not answer before the controller stopped")]
    InDoubt,
    /// The log refuses the batch, which has no effect.
    #[error("{0}")]
    Refused(String),
}

impl WriteError {
    /// Returns true if the batch had no effect.
    pub(crate) fn is_without_effect(&self) -> bool {
        matches!(self, Self::Store(StoreError::Refused(_)) | Self::Deposed(_) | Self::Refused(_))
    }
}

impl Journal {
    /// Makes a batch durable, and returns its revision. `level` is that of the state after it.
    pub(crate) async fn write(
        &self,
        store: &dyn Store,
        batch: Batch,
        level: Level,
        now: Timestamp,
    ) -> Result<Revision, WriteError> {
        match self {
            Self::Store => Ok(store.commit(batch).await?),
            Self::Log(log) => log.write(store, batch, level, now).await,
        }
    }

    /// Returns once it is sure that no other controller led when the call began. The answers of a batch that writes
    /// nothing wait for it.
    pub(crate) async fn confirm(&self) -> Result<(), WriteError> {
        match self {
            Self::Store => Ok(()),
            Self::Log(log) => log.until_answered(|| log.log.confirm(log.term)).await,
        }
    }

    /// Tells the log's observer that a batch was evaluated.
    pub(crate) fn note_evaluated(&self) {
        if let Self::Log(LogJournal { term, observer: Some(observer), .. }) = self {
            observer.evaluated(*term);
        }
    }

    /// Tells the log's observer that the evaluated batch is answered now, with the state at a position.
    pub(crate) fn note_answers(&self, shown: Revision) {
        if let Self::Log(LogJournal { term, observer: Some(observer), .. }) = self {
            observer.answers(*term, shown);
        }
    }

    /// Returns the time of a command that is evaluated now: never before that of an earlier one.
    pub(crate) fn time(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Store => now,
            Self::Log(log) => now.max(log.head.lock().at),
        }
    }
}

impl LogJournal {
    async fn write(
        &self,
        store: &dyn Store,
        batch: Batch,
        level: Level,
        now: Timestamp,
    ) -> Result<Revision, WriteError> {
        let Batch { expected, entities, records, note: _ } = batch;
        let head = self.head.lock().clone();
        if head.position != expected {
            return Err(StoreError::HeadMoved { expected, have: head.position }.into());
        }
        self.append(store, Content::Batch { entities, records }, level, &head, now).await
    }

    /// Appends an entry after a head, and applies it to the store. The level that a reader must know never falls.
    pub(crate) async fn append(
        &self,
        store: &dyn Store,
        content: Content,
        level: Level,
        head: &LogHead,
        now: Timestamp,
    ) -> Result<Revision, WriteError> {
        if head.is_past(self.term) {
            return Err(WriteError::Deposed(self.term));
        }
        let id = EntryId(uuid::Builder::from_random_bytes(self.random.seed()).into_uuid());
        let next = head.next_entry((id, self.term), (now, level), content).map_err(refused)?;
        let NextEntry { entry, position, bytes, head: next } = next;
        self.until_answered(|| self.log.append(self.term, position, bytes.clone())).await?;
        let batch = entry.into_batch(position, &next);
        *self.head.lock() = next;
        self.recent.note(position, bytes.len());
        Ok(store.apply(batch).await?)
    }

    /// Repeats a call of the log until its outcome is known. A repeated call has no further effect; its refusal says
    /// nothing about a call before it whose outcome is unknown.
    async fn until_answered<F: Future<Output = Result<(), LogError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<(), WriteError> {
        let mut unanswered = UnansweredCall::new(self.term);
        loop {
            let Err(failure) = call().await else { return Ok(()) };
            match unanswered.failed(failure) {
                AfterFailure::Deposed(term) => return Err(WriteError::Deposed(term)),
                AfterFailure::Unknown(term) => return Err(WriteError::Overtaken(term)),
                AfterFailure::Refused(failure) => return Err(WriteError::Refused(failure.to_string())),
                AfterFailure::Repeat(LogError::Refused(reason)) => {
                    tracing::error!(%reason, "the log refuses what it may have accepted before");
                }
                AfterFailure::Repeat(failure) => tracing::warn!(%failure, "the log does not answer"),
            }
            tokio::select! {
                () = self.stop.cancelled() => return Err(WriteError::InDoubt),
                () = tokio::time::sleep(AGAIN_AFTER) => {}
            }
        }
    }
}

fn refused(error: EntryError) -> WriteError {
    WriteError::Refused(error.to_string())
}
