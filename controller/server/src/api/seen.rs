//! The state that a caller has seen: no controller of a log shows it an older one, whichever the caller asked before.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode};
use periapt_host_api::{ErrorCode, Refusal, agent, api::WatchPosition};

use crate::{
    bounds::Slots, network::Network, published::Subscription, replication::Freshness, state::Durable,
};

/// The longest wait for what a caller has seen elsewhere. A controller that is further behind is stale, and clients go on
/// to the next one.
const REACHED_WITHIN: Duration = Duration::from_secs(5);

/// The most requests of callers with unknown credentials that wait at a time. Credentials may be so new that this
/// controller does not know them yet; but a caller that is nobody must not keep many requests open.
const WAITING_STRANGERS: usize = 64;

/// The most of them from one network, so that one network cannot keep the others from logging in.
const WAITING_OF_NETWORK: usize = 16;

/// The slots of the requests that wait with unknown credentials. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Strangers(Slots<Option<Network>>);

impl Default for Strangers {
    fn default() -> Self {
        Self(Slots::new(WAITING_OF_NETWORK, WAITING_STRANGERS))
    }
}

/// Returns the state that the caller of a request says it has seen, if this controller has not applied it yet.
///
/// # Errors
/// The header is no position.
pub(super) fn ahead(durable: &Durable, request: &HeaderMap) -> Result<Option<WatchPosition>, Refusal> {
    let name = agent::header::SEEN;
    let Some(value) = request.get(name) else { return Ok(None) };
    let seen = value.to_str().ok().and_then(|text| text.parse().ok());
    let seen: WatchPosition = seen.ok_or_else(|| {
        let text = format!("header {name} must be STORE/REVISION, as an answer of a controller has it");
        Refusal::bad_request(text)
    })?;
    Ok(durable.state.is_behind(seen.store, seen.revision).then_some(seen))
}

impl Strangers {
    /// Waits until this controller has applied all that was in the log when the request came. Another controller may have
    /// given out the credentials a moment before; what is unknown after the wait is no credential.
    ///
    /// # Errors
    /// It takes too long, or too many callers of the network, or of all, wait already. Nobody is told a revision.
    pub(super) async fn wait_for_log(
        &self,
        network: Option<Network>,
        freshness: &Freshness,
    ) -> Result<(), Refusal> {
        let again = |text: &str| Refusal::new(ErrorCode::TryAgain, text);
        let Some(_slot) = self.0.take(network) else {
            return Err(again(
                "this controller does not know the request's credentials, and too many callers wait until it has asked \
                 the log",
            ));
        };
        let caught_up = tokio::time::timeout(REACHED_WITHIN, freshness.caught_up()).await;
        caught_up.map_err(|_| again("this controller is behind the others"))
    }
}

/// Waits until this controller has applied what its caller has seen at another one: an older view would take that back.
///
/// # Errors
/// It takes too long.
pub(super) async fn reached(mut state: Subscription, seen: WatchPosition) -> Result<(), Refusal> {
    let reached = tokio::time::timeout(REACHED_WITHIN, state.reach(seen.store, seen.revision)).await;
    if matches!(reached, Ok(true)) {
        return Ok(());
    }
    let (now, seen) = (state.current().revision(), seen.revision);
    let message =
        format!("this controller is behind the others: it has applied revision {now}, not yet {seen}");
    Err(Refusal::new(ErrorCode::TryAgain, message))
}

/// Says in an answer how new the state is that it shows, if the next request may go to another controller. A caller that
/// is nobody is told nothing, and neither is one that asks again, as it may be nobody.
pub(super) fn tell(durable: &Durable, answer: &mut Response) {
    let is_for_nobody = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::SERVICE_UNAVAILABLE);
    if !durable.state.is_of_several() || is_for_nobody {
        return;
    }
    let now = durable.current();
    let seen = WatchPosition { store: now.store, revision: now.revision() };
    if let Ok(value) = HeaderValue::try_from(seen.to_string()) {
        answer.headers_mut().insert(agent::header::SEEN, value);
    }
}
