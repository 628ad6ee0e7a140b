//! The open answers of one connection, with the time since when the caller has not read a part.
//!
//! An answer that stalls over HTTP/2 is ended alone; over HTTP/1.1 it is all that its connection has.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::stream_tasks;
use crate::bounds::PatientStream;

/// The most bytes that an answer gives at once. HTTP/2 keeps what it was given until the caller's window has room, with
/// nobody to notice that it waits: this much of each stream, at most.
const PIECE: usize = 16 * 1024;

/// The unfinished requests of one connection. Cloning is cheap.
#[derive(Debug, Clone)]
pub(super) struct Answers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    next: u64,
    open: BTreeMap<u64, Request>,
    /// The time since when there is no request.
    idle_since: Instant,
}

/// An unfinished request.
#[derive(Debug, Default)]
struct Request {
    /// Since when a part of the answer waits to be read; none while the answer is made.
    given: Option<Instant>,
    /// The life of the answer, if its reader may pause for as long.
    patient: Option<PatientStream>,
    /// Ends the request's stream; none over HTTP/1.1.
    cut: Option<CancellationToken>,
}

impl Request {
    fn may_pause(&self) -> bool {
        self.patient.as_ref().is_some_and(|patient| !patient.over.is_cancelled())
    }
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// The caller waits for an answer, or reads it.
    Alive,
    /// There is no request.
    Idle,
    /// A part of an answer was given and is not read, and the answer cannot be ended alone.
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
        state.open.insert(number, Request::default());
        drop(state);
        Open { answers: self.clone(), number }
    }

    /// Ends the streams whose answers were not read within this time, and returns the state of the connection.
    pub(super) fn look(&self, within: Duration) -> ConnectionState {
        let (mut state, now) = (self.lock(), Instant::now());
        let long_ago = |then: Instant| now.saturating_duration_since(then) >= within;
        if state.open.is_empty() {
            return if long_ago(state.idle_since) { ConnectionState::Idle } else { ConnectionState::Alive };
        }
        for request in state.open.values_mut().filter(|request| request.may_pause()) {
            // The time counts from the end of what may be waited for.
            request.given = request.given.map(|_| now);
        }
        let stalled = state.open.values().filter(|request| request.given.is_some_and(long_ago));
        let mut of_connection = ConnectionState::Alive;
        for request in stalled {
            match &request.cut {
                Some(cut) => cut.cancel(),
                None => of_connection = ConnectionState::Stalled,
            }
        }
        of_connection
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each call leaves the state consistent.
        self.0.lock()
    }
}

impl Open {
    /// Returns the request's answer as a body that notes when it is read. The caller polls it in the stream's task. The
    /// reader of a `patient` answer may pause until that is over.
    pub(super) fn answer(self, body: Body, patient: Option<PatientStream>) -> Body {
        if let Some(request) = self.answers.lock().open.get_mut(&self.number) {
            request.cut = stream_tasks::current();
            request.patient = patient;
        }
        Body::new(Answer { body, rest: Bytes::new(), open: self })
    }

    fn note(&self, given: Option<Instant>) {
        if let Some(request) = self.answers.lock().open.get_mut(&self.number) {
            request.given = given;
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
    /// The part of the body's last data that is not given yet.
    rest: Bytes,
    open: Open,
}

impl Answer {
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), context)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = self.next(context);
        self.open.note(match polled {
            Poll::Ready(Some(Ok(_))) => Some(Instant::now()),
            _ => None,
        });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper.saturating_add(rest));
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
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
        let mut body = open.answer(Body::from_stream(parts), None);
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

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_a_dialogue_may_pause_until_the_dialogue_is_over() {
        let (answers, patient) = (Answers::new(), PatientStream::default());
        let parts = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(b"1")));
        let mut body = answers.open().answer(Body::from_stream(parts), Some(patient.clone()));
        assert!(body.frame().await.unwrap().is_ok());
        for _ in 0..100 {
            tokio::time::advance(WITHIN).await;
            assert_eq!(answers.look(WITHIN), ConnectionState::Alive);
        }
        patient.over.cancel();
        tokio::time::advance(WITHIN / 2).await;
        assert_eq!(
            answers.look(WITHIN),
            ConnectionState::Alive,
            "its reader has the usual time for the rest"
        );
        tokio::time::advance(WITHIN / 2).await;
        assert_eq!(answers.look(WITHIN), ConnectionState::Stalled);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_given_in_pieces_and_only_its_own_stream_ends_when_one_is_not_taken() {
        use hyper::rt::Executor as _;

        let answers = Answers::new();
        let (stalled, whole) = (answers.open(), answers.open());
        let text = vec![7; 3 * PIECE + 1];
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let content = text.clone();
        stream_tasks::StreamTasks.execute(async move {
            let mut body = stalled.answer(Body::from(content), None);
            assert_eq!(body.size_hint().exact(), Some(3 * PIECE as u64 + 1));
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!((piece.len(), body.is_end_stream()), (PIECE, false));
            assert_eq!(body.size_hint().exact(), Some(2 * PIECE as u64 + 1));
            let _ended_with_the_task = sender;
            std::future::pending::<()>().await;
        });
        assert_eq!(whole.answer(Body::from(text.clone()), None).collect().await.unwrap().to_bytes(), text);
        tokio::task::yield_now().await;
        tokio::time::advance(WITHIN).await;
        assert_eq!(answers.look(WITHIN), ConnectionState::Alive);
        receiver.await.unwrap_err();
        assert!(answers.lock().open.is_empty());
    }
}
