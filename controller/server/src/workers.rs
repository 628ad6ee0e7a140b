//! What the controller has to do by itself: the model says what is due, and each step is a command like any
//! other.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{Timestamp, command::Caller};
use periapt_model::{Input, WorkerCommand, due_work};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    commands::Commands,
    published::Subscription,
    writer::{Lane, model_of},
};

/// How long a step that was refused waits for another try, unless the state changes before.
const RETRY: Duration = Duration::from_secs(1);

/// The one loop of all workers.
pub(crate) struct Workers {
    pub(crate) commands: Commands,
    pub(crate) state: Subscription,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Workers {
    /// Does what is due until it is told to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let published = self.state.seen();
            let now = self.clock.now();
            let (due, wake) = due_work(&published.root, now, self.clock.monotonic_ms());
            let (done, refused) = tokio::select! {
                () = stop.cancelled() => return,
                counts = self.round(due) => counts,
            };
            if done > 0 {
                continue;
            }
            let wake = wake.map(|wake| until(now, wake));
            let wake = match refused {
                0 => wake,
                _ => Some(wake.unwrap_or(RETRY).min(RETRY)),
            };
            let sleep = async {
                match wake {
                    Some(duration) => self.clock.sleep(duration).await,
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

    /// Submits steps; answers how many were done and how many refused.
    async fn round(&self, due: Vec<WorkerCommand>) -> (usize, usize) {
        let (mut done, mut refused) = (0, 0);
        for command in due {
            let input = Input::Worker(command);
            let lane = model_of(&input).map_or(Lane::Controller, Lane::Model);
            match self.commands.submit_one(lane, &Caller::Worker, input.clone(), 0).await {
                Ok(_) => done += 1,
                Err(refusal) => {
                    tracing::warn!(step = ?input, %refusal, "a step of the controller's work was refused");
                    refused += 1;
                }
            }
        }
        (done, refused)
    }
}

/// How long until a time; never nothing, so that a time that has come is not asked for without end.
fn until(now: Timestamp, then: Timestamp) -> Duration {
    let ahead = then.as_millisecond().saturating_sub(now.as_millisecond());
    Duration::from_millis(u64::try_from(ahead).unwrap_or(0).max(1))
}
