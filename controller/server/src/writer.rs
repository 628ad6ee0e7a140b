//! The single writer: it evaluates commands in order against a speculative state, makes their writes durable
//! together, and only then publishes the state.

mod batch;
mod commands;
mod journal;
mod queue;
mod reopen;

use std::sync::Arc;

use periapt_host_api::{ErrorCode, Level, Refusal, Revision, Timestamp};
use periapt_model::Environment;
use periapt_store::{Batch, MAX_COMMIT_BYTES, Store, StoreError};
use periapt_telemetry::{
    context,
    spans::{BATCH, COMMIT, number},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, field::Empty};

pub(crate) use commands::{
    Answered, CommandAnswer, Commands, Job, Outcome, Pending, QueuedAnswers, Sender, Submitted, unknown,
};
pub(crate) use journal::{Journal, LogJournal, WriteError};
pub(crate) use queue::{Queue, QueueKey};
pub(crate) use reopen::{LoadedStore, load, read};

use crate::{
    clock::{Clock, RandomSource},
    metrics::metrics,
    options::OpenStore,
    pruning::SequenceGrowth,
    published::{Published, Publisher, Weight},
    refusals::Refusals,
    store_slot::StoreSlot,
};
use batch::Speculation;

/// The most commands of one batch. With their bytes it bounds the duration of a batch.
const BATCH_COUNT: usize = 512;
/// The most bytes of requests in one batch, except for a single larger request.
const BATCH_BYTES: usize = MAX_COMMIT_BYTES;

/// The writer's parts. It owns the only speculative state.
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue<Job>>,
    pub(crate) store: StoreSlot,
    pub(crate) opener: Arc<dyn OpenStore>,
    pub(crate) publisher: Publisher,
    pub(crate) journal: Journal,
    pub(crate) growth: SequenceGrowth,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn RandomSource>,
    /// The refused commands that have no entry of their own in the audit log.
    pub(crate) refusals: Refusals,
}

impl Writer {
    /// Runs until the controller stops, and then drops the queued commands, none of which was answered.
    pub(crate) async fn run(self, stop: CancellationToken) {
        while let Err(failure) = self.serve(&stop).await {
            let failure = match failure {
                WriteError::Store(failure) => failure,
                other => StoreError::Failed(other.to_string()),
            };
            if !self.reopen(failure, &stop).await {
                break;
            }
        }
        self.queue.close();
    }

    /// Evaluates and commits commands until it is told to stop. Returns an error if the writer cannot go on as it is.
    pub(crate) async fn serve(&self, stop: &CancellationToken) -> Result<(), WriteError> {
        loop {
            let jobs = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                jobs = self.take() => jobs,
            };
            self.turn(jobs).await?;
        }
    }

    /// Takes the commands of one batch from the queue.
    pub(crate) async fn take(&self) -> Vec<Job> {
        self.take_weighed().await.0
    }

    /// Takes the commands of one batch from the queue. Also returns their weight in bytes.
    pub(crate) async fn take_weighed(&self) -> (Vec<Job>, usize) {
        self.queue.take_weighed(BATCH_BYTES, BATCH_COUNT).await
    }

    /// Queues commands again that had no effect, before all that came later.
    pub(crate) fn give_back(&self, jobs: impl IntoIterator<Item = Job>) {
        give_back(&self.queue, jobs);
    }

    /// Evaluates some commands and commits their writes. Returns an error if the writer cannot go on as it is.
    async fn turn(&self, jobs: Vec<Job>) -> Result<(), WriteError> {
        metrics().batch_commands.observe(&[], jobs.len() as f64);
        let span = batch_span(&jobs);
        let before = self.publisher.current();
        let mut speculation = Speculation::new(&before.root, self.refusals.clone());
        let mut waiting = Vec::with_capacity(jobs.len());
        for job in jobs {
            let cause = job.pending.context();
            let command = job.command.as_ref();
            let result = speculation.evaluate(&job.sender, &job.input, command, &self.environment(), cause);
            let model = batch::model_of(&job.input);
            waiting.push((job, result, model));
        }
        self.journal.note_evaluated();
        let failure = match self.commit(&before, speculation).instrument(span).await {
            Ok(after) => {
                self.journal.note_answers(after.revision());
                for (job, result, model) in waiting {
                    let revision = model.map_or(after.revision(), |model| after.changed.model(&model));
                    job.pending.answer(CommandAnswer { result, revision }, Outcome::Evaluated);
                }
                return Ok(());
            }
            Err(failure) => failure,
        };
        if let WriteError::Deposed(_) = failure {
            // Nothing of them happened: they are passed on to the controller that leads now.
            self.give_back(waiting.into_iter().map(|(job, ..)| job));
            return Err(failure);
        }
        tracing::error!(error = %failure, "a batch of {} commands was not written", waiting.len());
        if !failure.is_without_effect() {
            // Published before the answers, so that a caller who gets the failure also sees it in `status`.
            self.say(reopen::unwritable(&failure));
        }
        let refusal = unavailable(&failure);
        for (job, ..) in waiting {
            let answered = CommandAnswer { result: Err(refusal.clone()), revision: before.revision() };
            job.pending.answer(answered, Outcome::Failed);
        }
        match failure {
            WriteError::Store(StoreError::Refused(_)) | WriteError::Refused(_) => Ok(()),
            other => Err(other),
        }
    }

    /// Writes a speculative state, and publishes it once it is durable.
    async fn commit(
        &self,
        before: &Published,
        speculation: Speculation,
    ) -> Result<Arc<Published>, WriteError> {
        let speculated = speculation.finish();
        let mut changed = before.changed.clone();
        let mut replaced = Weight::default();
        let root = match speculated.batch {
            None => {
                self.journal.confirm().await?;
                speculated.root
            }
            Some(mut batch) => {
                self.growth.admit(&mut batch.records);
                replaced = Weight::of(&batch);
                let store = self.store.get().ok_or_else(|| StoreError::Failed("it is closed".into()))?;
                let (level, now) = (speculated.root.level(), self.clock.now());
                let revision = committed(&self.journal, &*store, batch, level, now).await?;
                for model in speculated.models {
                    changed.note_model(model, revision);
                }
                if speculated.outside {
                    changed.note_outside(revision);
                }
                for (model, context) in speculated.causes {
                    changed.note_cause(model, revision, context);
                }
                batch::at_revision(&speculated.root, revision)
            }
        };
        if speculated.differs {
            let problem = before.problem.clone();
            let next = Published { root, store: before.store, changed, problem, since: Instant::now() };
            self.publisher.publish(next, replaced);
        }
        Ok(self.publisher.current())
    }

    fn environment(&self) -> Environment {
        Environment {
            now: self.journal.time(self.clock.now()),
            lease_now_ms: self.clock.monotonic_ms(),
            seed: self.random.seed(),
        }
    }
}

/// Queues commands again that had no effect, before all that came later.
pub(crate) fn give_back(queue: &Queue<Job>, jobs: impl IntoIterator<Item = Job>) {
    queue.put_back(jobs.into_iter().map(|job| (job.key, job)).collect());
}

/// Commits a batch, and measures that.
async fn committed(
    journal: &Journal,
    store: &dyn Store,
    batch: Batch,
    level: Level,
    now: Timestamp,
) -> Result<Revision, WriteError> {
    let entities = batch.entities.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
    let records = batch.records.iter().map(|record| record.prefix.len() + record.body.len());
    let bytes: usize = entities.chain(records).sum();
    let span = periapt_telemetry::span!(
        COMMIT,
        bytes = number(bytes),
        revision = Empty,
        outcome = Empty,
        sync_us = Empty
    );
    let began = Instant::now();
    let result = journal.write(store, batch, level, now).instrument(span.clone()).await;
    let outcome = match &result {
        Ok(_) => "written",
        Err(error) if error.is_without_effect() => "refused",
        Err(_) => "failed",
    };
    metrics().commits.took(&[outcome], began.elapsed());
    span.record("outcome", outcome);
    if let Ok(revision) = &result {
        metrics().batch_bytes.observe(&[], bytes as f64);
        metrics().revision.set(&[], revision.0);
        span.record("revision", number(revision.0));
        if let Some(sync) = store.sync_time() {
            metrics().sync.took(&[], sync);
            span.record("sync_us", number(sync.as_micros()));
        }
    }
    result
}

/// Makes the span of a batch: a child of its first command that is recorded, and linked to the others.
fn batch_span(jobs: &[Job]) -> Span {
    let mut recorded = jobs.iter().map(|job| &job.pending).filter(|pending| !pending.span().is_disabled());
    let Some(first) = recorded.next() else { return Span::none() };
    let span = periapt_telemetry::span!(parent: first.span(), BATCH, commands = number(jobs.len()));
    for command in recorded.filter_map(Pending::context) {
        context::link(&span, &command);
    }
    span
}

/// Returns the refusal for the commands of a batch that the store did not take.
fn unavailable(failure: &WriteError) -> Refusal {
    let (code, advice) = match failure {
        failure if failure.is_without_effect() => {
            (ErrorCode::StorageUnavailable, "the request had no effect, try again")
        }
        WriteError::InDoubt | WriteError::Overtaken(_) => {
            (ErrorCode::OutcomeUnknown, "check whether the request had an effect")
        }
        _ => (ErrorCode::OutcomeUnknown, "it is being opened again, check whether the request had an effect"),
    };
    Refusal::new(code, format!("{failure}; {advice}"))
}
