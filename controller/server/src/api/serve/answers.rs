//! The open answers of one connection, with the time since when the caller has not read a part.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The unfinished requests of one connection. Cloning is cheap.
#[derive(Debug, Clone)]
pub(super) struct Answers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    next: u64,
    /// The requests. The time is set while a part of the answer waits to be read, and none while the answer is made.
    open: BTreeMap<u64, Option<Instant>>,
    /// The time since when there is no request.
    idle_since: Instant,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// The caller waits for an answer, or reads it.
    Alive,
    /// There is no request.
    Idle,
    /// A part of an answer was given and is not read.
    Stalled,
}

/// A request, until its answer is finished.
#[derive(Debug)]
pub(super) struct Open {
    answers: Answers,
    number: u64,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { next: 0, open: BTreeMap::new(), idle_since: Instant::now() })))
    }

    /// Notes a new request.
    pub(super) fn open(&self) -> Open {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.open.insert(number, None);
        drop(state);
        Open { answers: self.clone(), number }
    }

    /// Returns the state of the connection, by what happened within this time.
    pub(super) fn look(&self, within: Duration) -> ConnectionState {
        let (state, now) = (self.lock(), Instant::now());
        let long_ago = |then: Instant| now.saturating_duration_since(then) >= within;
        if state.open.is_empty() {
            return if long_ago(state.idle_since) { ConnectionState::Idle } else { ConnectionState::Alive };
        }
        match state.open.values().flatten().any(|given| long_ago(*given)) {
            true => ConnectionState::Stalled,
            false => ConnectionState::Alive,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each call leaves the state consistent.
        self.0.lock()
    }
}

impl Open {
    /// Returns the request's answer as a body that notes when it is read.
    pub(super) fn answer(self, body: Body) -> Body {
        Body::new(Answer { body, open: self })
    }

    fn note(&self, given: Option<Instant>) {
        if let Some(open) = self.answers.lock().open.get_mut(&self.number) {
            *open = given;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.answers.lock();
        state.open.remove(&self.number);
        state.idle_since = Instant::now();
    }
}

/// A body that notes when a part is given, and when the next one is requested.
struct Answer {
    body: Body,
    open: Open,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.open.note(match polled {
            Poll::Ready(Some(Ok(_))) => Some(Instant::now()),
            _ => None,
        });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_without_requests_and_stalled_when_a_part_is_not_taken() {
        let answers = Answers::new();
        assert_eq!(answers.look(WITHIN), ConnectionState::Alive);
        tokio::time::advance(WITHIN).await;
        assert_eq!(answers.look(WITHIN), ConnectionState::Idle);

        let open = answers.open();
        tokio::time::advance(10 * WITHIN).await;
        assert_eq!(answers.look(WITHIN), ConnectionState::Alive, "who waits for us is not to blame");
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(4);
        let parts = futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|part| (part, receiver))
        });
        let mut body = open.answer(Body::from_stream(parts));
        sender.send(Ok(Bytes::from_static(b"1"))).await.unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        assert_eq!(answers.look(WITHIN), ConnectionState::Alive);
        tokio::time::advance(WITHIN).await;
        assert_eq!(answers.look(WITHIN), ConnectionState::Stalled);

        assert!(futures_util::poll!(body.frame()).is_pending());
        tokio::time::advance(10 * WITHIN).await;
        assert_eq!(
            answers.look(WITHIN),
            ConnectionState::Alive,
            "it was taken, and the next is not there yet"
        );
        drop(body);
        assert_eq!(answers.look(WITHIN), ConnectionState::Alive);
        tokio::time::advance(WITHIN).await;
        assert_eq!(answers.look(WITHIN), ConnectionState::Idle);
    }
}
