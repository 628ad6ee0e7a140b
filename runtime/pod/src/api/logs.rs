//! Logs, as lines of JSON.

use std::{collections::VecDeque, convert::Infallible, sync::Arc};

use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State as Of},
    http::{HeaderValue, header::CONTENT_TYPE},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream::unfold;
use periapt_helper::MayPause;
use periapt_pebble::{OutputLine, PodAnswer, PodCaller, PodRefusal, PodRequest};
use serde_json::json;

use super::{State, answer::refused, query::Query};

/// The lines that a client gets which does not say how many.
const NEWEST: usize = 30;

/// Shows the output of services, and goes on as it grows if the client follows. A follower that is slower than the
/// output misses lines: what is kept is bounded. The pod's owner may pause, as an operator who reads page by page, and
/// gets all that is kept by then.
pub(super) async fn logs(
    Of(state): Of<Arc<State>>,
    Extension(caller): Extension<PodCaller>,
    Extension(may_pause): Extension<MayPause>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    let services = query.list("services");
    let newest = match query.first("n") {
        "" => Some(NEWEST),
        "-1" => None,
        text => match text.parse() {
            Ok(newest) => Some(newest),
            Err(_) => return refused(PodRefusal::bad("n must be -1, 0, or a positive integer")),
        },
    };
    let follows = query.first("follow") == "true";
    let permit = match follows {
        false => None,
        true => match state.followers.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => return refused(PodRefusal::busy("too many readers follow the logs; try again later")),
        },
    };
    let first = PodRequest::Logs { services: services.clone(), newest, from: 0 };
    let (lines, next) = match state.handle.ask(caller, first).await.result {
        Ok(PodAnswer::Logs(lines, next)) => (lines, next),
        Ok(_) => {
            return refused(PodRefusal {
                status: 500,
                kind: None,
                message: "the core gave another answer".to_owned(),
            });
        }
        Err(refusal) => return refused(refusal),
    };
    if caller.is_owner {
        may_pause.allow();
    }
    let mut grown = state.handle.lines();
    grown.mark_changed();
    let begin = Follower { state, caller, services, next, lines: lines.into(), grown, permit };
    let stream = unfold(begin, |mut follower| async move {
        let line = follower.line().await?;
        Some((Ok::<_, Infallible>(line), follower))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}

/// A reader of logs.
struct Follower {
    state: Arc<State>,
    caller: PodCaller,
    services: Vec<String>,
    next: u64,
    lines: VecDeque<OutputLine>,
    grown: tokio::sync::watch::Receiver<u64>,
    /// A place among the followers; none for a reader that does not wait for more.
    permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Follower {
    /// Returns the next line; none at the end.
    async fn line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(OutputLine { time, service, message, .. }) = self.lines.pop_front() {
                let line = json!({ "time": time.to_string(), "service": service, "message": message });
                return Some(format!("{line}\n").into());
            }
            self.permit.as_ref()?;
            let next = self.next;
            self.grown.wait_for(|line| *line > next).await.ok()?;
            let request = PodRequest::Logs { services: self.services.clone(), newest: None, from: next };
            let Ok(PodAnswer::Logs(lines, next)) = self.state.handle.ask(self.caller, request).await.result
            else {
                return None;
            };
            (self.lines, self.next) = (lines.into(), next);
        }
    }
}
