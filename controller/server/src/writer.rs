//! The single writer: it evaluates commands in order against a speculative state, makes their writes durable
//! together, and only then publishes the state.

mod batch;
mod queue;
mod reopen;

use std::sync::Arc;

use periapt_host_api::{ErrorCode, Refusal, Revision, command::Caller};
use periapt_model::{Environment, Input, Output};
use periapt_store::{MAX_COMMIT_BYTES, StoreError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(crate) use queue::{Lane, Queue};
pub(crate) use reopen::load;

use crate::{
    clock::{Clock, RandomSource},
    options::OpenStore,
    published::{Published, Publisher, Weight},
    store_slot::StoreSlot,
    upkeep::Growth,
};
use batch::Speculation;

/// The most commands of one batch. With their bytes it bounds the duration of a batch.
const BATCH_COUNT: usize = 512;
/// The most bytes of requests in one batch, except for a single larger request.
const BATCH_BYTES: usize = MAX_COMMIT_BYTES;

/// A command in the queue.
pub(crate) struct Job {
    /// The caller.
    pub(crate) caller: Caller,
    /// The command.
    pub(crate) input: Input,
    /// The receiver of the result, which may be gone.
    pub(crate) answer: oneshot::Sender<Answered>,
}

/// The result of one command, once it is durable.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The output, or the refusal.
    pub(crate) result: Result<Output, Refusal>,
    /// The revision at which the result can be read.
    pub(crate) revision: Revision,
}

/// The writer's parts. It owns the only speculative state.
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue<Job>>,
    pub(crate) store: StoreSlot,
    pub(crate) opener: Arc<dyn OpenStore>,
    pub(crate) publisher: Publisher,
    pub(crate) growth: Growth,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn RandomSource>,
}

impl Writer {
    /// Runs until the controller stops, and then drops the queued commands, none of which was answered.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let jobs = tokio::select! {
                () = stop.cancelled() => break,
                jobs = self.queue.take(BATCH_BYTES, BATCH_COUNT) => jobs,
            };
            if let Err(failure) = self.turn(jobs).await
                && !self.reopen(failure, &stop).await
            {
                break;
            }
        }
        self.queue.close();
    }

    /// Evaluates some commands and commits their writes. Returns an error if the store must be reopened.
    async fn turn(&self, jobs: Vec<Job>) -> Result<(), StoreError> {
        let before = self.publisher.current();
        let mut speculation = Speculation::new(&before.root);
        let mut waiting = Vec::with_capacity(jobs.len());
        for job in jobs {
            let result = speculation.evaluate(&job.caller, &job.input, &self.environment());
            let model = batch::model_of(&job.input);
            waiting.push((job.answer, result, model));
        }
        let failure = match self.commit(&before, speculation).await {
            Ok(after) => {
                for (answer, result, model) in waiting {
                    let revision = model.map_or(after.revision(), |model| after.changed.model(&model));
                    // The caller may be gone; the command's effect is in the state.
                    let _ = answer.send(Answered { result, revision });
                }
                return Ok(());
            }
            Err(failure) => failure,
        };
        tracing::error!(error = %failure, "a batch of {} commands was not written", waiting.len());
        if !matches!(failure, StoreError::Refused(_)) {
            // Published before the answers, so that a caller who gets the failure also sees it in `status`.
            self.say(&failure);
        }
        let refusal = unavailable(&failure);
        for (answer, ..) in waiting {
            let _ = answer.send(Answered { result: Err(refusal.clone()), revision: before.revision() });
        }
        match failure {
            StoreError::Refused(_) => Ok(()),
            in_doubt => Err(in_doubt),
        }
    }

    /// Writes a speculative state, and publishes it once it is durable.
    async fn commit(
        &self,
        before: &Published,
        speculation: Speculation,
    ) -> Result<Arc<Published>, StoreError> {
        let speculated = speculation.finish();
        let mut changed = before.changed.clone();
        let mut replaced = Weight::default();
        let root = match speculated.batch {
            None => speculated.root,
            Some(mut batch) => {
                self.growth.admit(&mut batch.records);
                replaced = Weight::of(&batch);
                let store = self.store.get().ok_or_else(|| StoreError::Failed("it is closed".into()))?;
                let revision = store.commit(batch).await?;
                for model in speculated.models {
                    changed.note_model(model, revision);
                }
                if speculated.outside {
                    changed.note_outside(revision);
                }
                batch::at_revision(&speculated.root, revision)
            }
        };
        if speculated.differs {
            let problem = before.problem.clone();
            let next = Published { root, store: before.store, changed, problem };
            self.publisher.publish(next, replaced);
        }
        Ok(self.publisher.current())
    }

    fn environment(&self) -> Environment {
        Environment {
            now: self.clock.now(),
            lease_now_ms: self.clock.monotonic_ms(),
            seed: self.chance.seed(),
        }
    }
}

/// Returns the refusal for the commands of a batch that the store did not take.
fn unavailable(failure: &StoreError) -> Refusal {
    let message = match failure {
        StoreError::Refused(_) => format!("{failure}; nothing of the request happened, try again"),
        _ => format!("{failure}; it is being opened again, look whether the request happened"),
    };
    Refusal::new(ErrorCode::StorageUnavailable, message)
}
