//! The end of streams whose user loses the right to them: a session that is closed, a user who is disabled, a grant that
//! is revoked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use axum::{body::Body, response::Response};
use futures_util::StreamExt as _;
use http::header;
use parking_lot::Mutex;
use periapt_host_api::{ModelUuid, Timestamp, command::Caller};
use periapt_model::{Right, Root, Subject, active_user, authenticate};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{caller::RequestCaller, streams::NDJSON},
    clock::Clock,
    published::{Published, Subscription},
};

/// The open streams of users. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guards(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: BTreeMap<u64, Guarded>,
}

/// One stream of a user.
#[derive(Debug, Clone)]
struct Guarded {
    who: RequestCaller,
    right: Right,
    /// The model that the stream is about, if it is about one.
    model: Option<ModelUuid>,
    /// Ends the stream.
    cut: CancellationToken,
}

impl Guarded {
    fn holds(&self, root: &Root, now: Timestamp) -> bool {
        let known = match &self.who.session {
            Some(session) => authenticate(root, &session.token, now).is_some(),
            None => active_user(root, &self.who.caller).is_some(),
        };
        let may = match &self.model {
            Some(model) => root
                .model_or_remains(model)
                .is_some_and(|state| self.who.may(root, self.right, Subject::Model(state))),
            None => self.who.may(root, self.right, Subject::Controller),
        };
        known && may
    }
}

/// A stream's place among the open ones, which it leaves when it is dropped.
struct Place {
    open: Weak<Mutex<Open>>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(open) = self.open.upgrade() {
            open.lock().streams.remove(&self.number);
        }
    }
}

impl Guards {
    /// Returns a response whose stream ends when the caller loses the right to it. Other responses, and those to agents,
    /// are returned as they are.
    pub(crate) fn guard(
        &self,
        response: Response,
        (who, right, model): (RequestCaller, Right, Option<ModelUuid>),
        holds: impl FnOnce(&dyn Fn(&Root, Timestamp) -> bool) -> bool,
    ) -> Response {
        let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == NDJSON);
        if !is_stream || !matches!(who.caller, Caller::User(_)) {
            return response;
        }
        let guarded = Guarded { who, right, model, cut: CancellationToken::new() };
        let place = self.enter(guarded.clone());
        // The right may have been lost between the admission and the entry.
        if !holds(&|root, now| guarded.holds(root, now)) {
            guarded.cut.cancel();
        }
        let (parts, body) = response.into_parts();
        let lines = body.into_data_stream().take_until(guarded.cut.cancelled_owned()).map(move |line| {
            let _ = &place;
            line
        });
        Response::from_parts(parts, Body::from_stream(lines))
    }

    fn enter(&self, guarded: Guarded) -> Place {
        let mut open = self.0.lock();
        let number = open.next;
        open.next += 1;
        open.streams.insert(number, guarded);
        Place { open: Arc::downgrade(&self.0), number }
    }

    /// Looks at all open streams whenever users, sessions or grants change, until the controller stops.
    pub(crate) async fn run(self, mut state: Subscription, clock: Arc<dyn Clock>, stop: CancellationToken) {
        let mut seen = state.seen();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                alive = state.changed() => if !alive { return },
            }
            let now = state.seen();
            if access_differs(&seen, &now) {
                self.look(&now.root, clock.now());
            }
            seen = now;
        }
    }

    fn look(&self, root: &Root, now: Timestamp) {
        // Checked without the lock: a stream that ends takes it.
        let open: Vec<Guarded> = self.0.lock().streams.values().cloned().collect();
        for guarded in open.iter().filter(|guarded| !guarded.holds(root, now)) {
            guarded.cut.cancel();
        }
    }
}

/// Returns true if users, sessions or grants may differ between two states. It looks at the models that were written
/// between them alone.
fn access_differs(old: &Published, new: &Published) -> bool {
    if old.store != new.store || !old.root.knows_the_same_users(&new.root) {
        return true;
    }
    let Some(written) = new.changed.models_since(&old.changed) else { return true };
    written.into_iter().any(|model| match (old.root.model(&model), new.root.model(&model)) {
        (Some(old), Some(new)) => !old.grants_the_same(new),
        _ => true,
    })
}
