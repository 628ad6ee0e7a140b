//! The ways to the other agents of a model, as the controller told them last.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::{AgentName, ModelUuid, agent::AgentPlace};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::keeper::controller::{Controller, ControllerError};

/// The time after which the controller is asked again before an answer is used. An agent's key that another one has
/// replaced counts for no longer, as long as the controller answers.
const FRESH: Duration = Duration::from_secs(60);

/// The shortest time between two questions: units that call what does not exist cause no more.
const AGAIN: Duration = Duration::from_secs(1);

/// The time after which a question that was not answered is put again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The time for the controller to answer. Callers wait, and without an answer the last one counts.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The ways to agents, by their names.
pub(crate) type Ways = Arc<BTreeMap<AgentName, AgentPlace>>;

/// A source of the ways to the other agents of a model.
pub(crate) trait AskWays: Send + Sync {
    /// Asks for the present ways.
    fn ask(
        &self,
        model: ModelUuid,
    ) -> BoxFuture<'_, Result<BTreeMap<AgentName, AgentPlace>, ControllerError>>;
}

impl<C: Controller> AskWays for C {
    fn ask(
        &self,
        model: ModelUuid,
    ) -> BoxFuture<'_, Result<BTreeMap<AgentName, AgentPlace>, ControllerError>> {
        self.peers(model).boxed()
    }
}

/// The ways of one model.
pub(crate) struct PeerWays {
    model: ModelUuid,
    source: Arc<dyn AskWays>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    ways: Ways,
    asked_at: Option<Instant>,
    /// The time from which the ways are to be asked for anew.
    stale_at: Option<Instant>,
}

impl PeerWays {
    /// Creates the ways of a model, of which nothing is known.
    pub(crate) fn new(model: ModelUuid, source: Arc<dyn AskWays>) -> Self {
        Self { model, source, known: Mutex::default() }
    }

    /// Returns the ways, which are a minute old at most if the controller answers.
    pub(crate) async fn recent(&self) -> Ways {
        let mut known = self.known.lock().await;
        if known.stale_at.is_none_or(|at| at <= Instant::now()) {
            self.ask(&mut known).await;
        }
        Arc::clone(&known.ways)
    }

    /// Returns the ways after those that did not do.
    pub(crate) async fn after(&self, ways: &Ways) -> Ways {
        let mut known = self.known.lock().await;
        let is_same = Arc::ptr_eq(&known.ways, ways);
        if is_same && known.asked_at.is_none_or(|at| at.elapsed() >= AGAIN) {
            self.ask(&mut known).await;
        }
        Arc::clone(&known.ways)
    }

    async fn ask(&self, known: &mut Known) {
        let answer = timeout(ANSWERS_WITHIN, self.source.ask(self.model)).await;
        let now = Instant::now();
        known.asked_at = Some(now);
        known.stale_at = Some(now + AFTER_FAILURE);
        match answer {
            Ok(Ok(ways)) => {
                known.ways = Arc::new(ways);
                known.stale_at = Some(now + FRESH);
            }
            Ok(Err(error)) => {
                tracing::info!(model = %self.model, %error, "the controller does not tell the ways to other agents");
            }
            Err(_) => {
                tracing::info!(model = %self.model, "the controller does not answer where other agents are")
            }
        }
    }
}
