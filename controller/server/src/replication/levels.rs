//! The raise of the level of what is stored, once the program of each known controller knows the next one.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{Level, command::Caller};
use periapt_model::{Input, WorkerCommand};
use tokio_util::sync::CancellationToken;

use super::Members;
use crate::{
    clock::Clock,
    published::Subscription,
    writer::{Commands, QueueKey},
};

/// The interval of comparisons.
const COMPARE_EVERY: Duration = Duration::from_secs(2);

/// The time after which a controller that leads knows all that run: they report every two seconds, and are given time
/// to start.
const KNOWN_AFTER: Duration = Duration::from_secs(30);

/// The raise of the level by the controller that leads.
#[derive(Clone)]
pub(crate) struct LevelRaise {
    pub(crate) commands: Commands,
    pub(crate) state: Subscription,
    pub(crate) members: Members,
    pub(crate) clock: Arc<dyn Clock>,
}

impl LevelRaise {
    /// Raises the level whenever all controllers know a higher one, until this one does not lead any more.
    pub(crate) async fn run(self, until: CancellationToken) {
        let mut wait = if self.members.is_one_of_several() { KNOWN_AFTER } else { Duration::ZERO };
        loop {
            tokio::select! {
                () = until.cancelled() => return,
                () = self.clock.sleep(wait) => {}
            }
            wait = COMPARE_EVERY;
            let (level, stored) = (self.members.level(), self.state.current().root.level());
            if level > stored {
                self.raise(level).await;
            }
        }
    }

    async fn raise(&self, level: Level) {
        let input = Input::Worker(WorkerCommand::RaiseLevel(level));
        match self.commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0).await {
            Ok(_) => tracing::info!(%level, "the level of what is stored was raised"),
            Err(refusal) => tracing::warn!(%level, %refusal, "the level of what is stored was not raised"),
        }
    }
}
