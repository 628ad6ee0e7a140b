//! The list of controllers that the leading one keeps in the state, and the raise of the level of what is stored, once
//! the program of each listed controller knows the next one.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::FusedFuture as _};
use periapt_host_api::{
    Level, Refusal,
    command::{Caller, MemberInfo},
};
use periapt_model::{Input, Root, WorkerCommand, entity::ControllerMember};
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

/// The first level at which controllers are listed in the state.
const LISTED_FROM: Level = Level(2);

/// The list of controllers and the raise of the level, by the controller that leads.
#[derive(Clone)]
pub(crate) struct LevelRaise {
    pub(crate) commands: Commands,
    pub(crate) state: Subscription,
    pub(crate) members: Members,
    pub(crate) clock: Arc<dyn Clock>,
}

impl LevelRaise {
    /// Lists the controllers and raises the level once all know a higher one, until this one does not lead any more.
    pub(crate) async fn run(self, until: CancellationToken) {
        let known_after = if self.members.is_one_of_several() { KNOWN_AFTER } else { Duration::ZERO };
        let mut all_are_known = std::pin::pin!(self.clock.sleep(known_after).fuse());
        let mut wait = Duration::ZERO;
        loop {
            tokio::select! {
                () = until.cancelled() => return,
                () = self.clock.sleep(wait) => {}
            }
            wait = COMPARE_EVERY;
            self.list().await;
            if all_are_known.as_mut().now_or_never().is_some() || all_are_known.is_terminated() {
                self.raise().await;
            }
        }
    }

    async fn raise(&self) {
        let (level, stored) = (self.members.level(), self.state.current().root.level());
        if level <= stored {
            return;
        }
        match self.submit(WorkerCommand::RaiseLevel(level)).await {
            Ok(()) => tracing::info!(%level, "the level of what is stored was raised"),
            Err(refusal) => tracing::warn!(%level, %refusal, "the level of what is stored was not raised"),
        }
    }

    async fn list(&self) {
        let published = self.state.current();
        if published.root.level() < LISTED_FROM {
            return;
        }
        let members = self.members.list();
        for member in members.into_iter().filter(|member| is_news(&published.root, member)) {
            let MemberInfo { name, url, level, .. } = member;
            let noted = self.submit(WorkerCommand::NoteController { name: name.clone(), url, level }).await;
            if let Err(refusal) = noted {
                tracing::warn!(name, %refusal, "a controller was not listed");
            }
        }
    }

    async fn submit(&self, command: WorkerCommand) -> Result<(), Refusal> {
        let input = Input::Worker(command);
        self.commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0).await.map(drop)
    }
}

/// Returns true if the stored list has other news of a controller than this one has.
fn is_news(root: &Root, member: &MemberInfo) -> bool {
    let is_stored = |(name, stored): (&str, &ControllerMember)| {
        name == member.name && stored.url.as_deref() == Some(&member.url) && stored.level == member.level
    };
    !member.url.is_empty() && !root.members().any(is_stored)
}
