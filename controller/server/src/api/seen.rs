//! The state that a caller has seen: no controller of a log shows it an older one, whichever the caller asked before.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, HeaderValue};
use periapt_host_api::{ErrorCode, Refusal, agent, api::WatchPosition};

use crate::{published::Subscription, state::Durable};

/// The longest wait for what a caller has seen elsewhere. A controller that is further behind is stale, and clients go on
/// to the next one.
const REACHED_WITHIN: Duration = Duration::from_secs(5);

/// Waits until this controller has applied what the caller of a request says that it has seen.
///
/// # Errors
/// It takes too long, or the header is no position.
pub(super) async fn reached_for(durable: &Durable, request: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = request.get(agent::header::SEEN) else { return Ok(()) };
    let seen = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || {
        let name = agent::header::SEEN;
        Refusal::bad_request(format!(
            "header {name} must be STORE/REVISION, as an answer of a controller has it"
        ))
    };
    reached(durable.state.clone(), seen.ok_or_else(wrong)?).await
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

/// Says in an answer how new the state is that it shows, if the next request may go to another controller.
pub(super) fn tell(durable: &Durable, answer: &mut Response) {
    if !durable.state.is_of_several() {
        return;
    }
    let now = durable.current();
    let seen = WatchPosition { store: now.store, revision: now.revision() };
    if let Ok(value) = HeaderValue::try_from(seen.to_string()) {
        answer.headers_mut().insert(agent::header::SEEN, value);
    }
}
