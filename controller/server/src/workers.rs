//! The controller's background work. The model says what is due, and each step is an ordinary command.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use periapt_host_api::{Refusal, Timestamp, command::Caller};
use periapt_model::{Input, WorkSchedule, WorkerCommand, due_work};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    metrics::metrics,
    published::Subscription,
    writer::{Commands, QueueKey},
};

/// The loop of all workers.
#[derive(Clone)]
pub(crate) struct Workers {
    pub(crate) commands: Commands,
    pub(crate) state: Subscription,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Workers {
    /// Runs due work until the controller stops.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut schedule = WorkSchedule::default();
        loop {
            let published = self.state.seen();
            let now = self.clock.now();
            let (due, wake) = due_work(&published.root, now, self.clock.monotonic_ms(), &schedule);
            if !due.is_empty() {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.round(due, &mut schedule) => {}
                }
                continue;
            }
            let sleep = async {
                match wake {
                    Some(wake) => self.clock.sleep(until(now, wake)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                alive = self.state.changed() => if !alive { return },
                () = sleep => {}
            }
        }
    }

    /// Submits steps, each in its model's queue, and notes their results.
    async fn round(&self, due: Vec<WorkerCommand>, schedule: &mut WorkSchedule) {
        let results = join_all(due.iter().map(|command| self.submit(command))).await;
        for (command, result) in due.iter().zip(results) {
            match result {
                Ok(()) => {
                    metrics().worker_steps.inc(&["done"]);
                    schedule.done(command);
                }
                Err(refusal) => {
                    tracing::warn!(step = ?command, %refusal, "a step of the controller's work was refused");
                    metrics().worker_steps.inc(&["refused"]);
                    schedule.refused(command, &refusal, self.clock.monotonic_ms());
                }
            }
        }
    }

    async fn submit(&self, command: &WorkerCommand) -> Result<(), Refusal> {
        let key = command.model().map_or(QueueKey::Controller, QueueKey::Model);
        let input = Input::Worker(command.clone());
        self.commands.submit_one(key, &Caller::Worker, input, 0).await.map(drop)
    }
}

/// Returns the duration until a time, but at least a millisecond, so that a time in the past causes no busy loop.
fn until(now: Timestamp, then: Timestamp) -> Duration {
    let ahead = then.as_millisecond().saturating_sub(now.as_millisecond());
    Duration::from_millis(u64::try_from(ahead).unwrap_or(0).max(1))
}
