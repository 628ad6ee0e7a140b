//! A stream from the controller that resumes after each interruption.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use periapt_host_api::{
    ModelUuid, agent::AgentAssignments, api::WatchPosition, timing::WATCH_SILENCE, view::FrameLine,
};
use tokio::time::{Instant, sleep_until};

use super::controller::{Answers, Controller, ControllerError};
use crate::metrics::metrics;
use periapt_client::Backoff;

/// A stream's source and position.
pub(crate) trait Source: Send + 'static {
    /// The type of the stream's items.
    type Item: Send + 'static;

    /// Opens the stream from the current position.
    fn open(&self) -> BoxFuture<'static, Result<Answers<Self::Item>, ControllerError>>;

    /// Records that an item was passed on.
    fn passed(&mut self, item: &Self::Item);

    /// Returns the longest time between two items of a live stream.
    fn silence(&self) -> Option<Duration>;

    /// Returns the stream's name, for logs.
    fn name(&self) -> &'static str;
}

enum State<T> {
    Closed,
    Waiting(Instant),
    Opening(BoxFuture<'static, Result<Answers<T>, ControllerError>>),
    Open(Answers<T>, Instant),
}

/// A stream that opens again at its position whenever it ends.
pub(crate) struct Follow<S: Source> {
    source: S,
    state: State<S::Item>,
    backoff: Backoff,
}

impl<S: Source> Follow<S> {
    /// Creates a closed stream. The first [`Follow::next`] opens it.
    pub(crate) fn new(source: S) -> Self {
        Self { source, state: State::Closed, backoff: Backoff::network() }
    }

    /// Returns the source, for changes of its position.
    pub(crate) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the source.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// Closes the current stream. The next call of [`Follow::next`] opens it again at its position.
    pub(crate) fn close(&mut self) {
        if !matches!(self.state, State::Waiting(_)) {
            self.state = State::Closed;
        }
    }

    /// Waits for the next item. Cancellation loses none.
    pub(crate) async fn next(&mut self) -> S::Item {
        loop {
            match &mut self.state {
                State::Closed => self.state = State::Opening(self.source.open()),
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Closed;
                }
                State::Opening(opening) => match opening.await {
                    Ok(stream) => self.state = State::Open(stream, Instant::now()),
                    Err(error) => self.failed(&error),
                },
                State::Open(stream, heard_at) => {
                    let next = match self.source.silence() {
                        Some(silence) => tokio::time::timeout_at(*heard_at + silence, stream.next()).await,
                        None => Ok(stream.next().await),
                    };
                    match next {
                        Ok(Some(Ok(item))) => {
                            *heard_at = Instant::now();
                            self.backoff.succeeded();
                            self.source.passed(&item);
                            return item;
                        }
                        Ok(Some(Err(error))) => self.failed(&error),
                        Ok(None) => self.failed(&ControllerError::Away("the stream ended".to_owned())),
                        Err(_) => self.failed(&ControllerError::Away("the stream went silent".to_owned())),
                    }
                }
            }
        }
    }

    fn failed(&mut self, error: &ControllerError) {
        let wait = self.backoff.failed();
        metrics().retries.inc(&["stream"]);
        tracing::debug!(stream = self.source.name(), %error, ?wait, "a stream broke");
        self.state = State::Waiting(Instant::now() + wait);
    }
}

/// The agent's assignments.
pub(crate) struct Assignments<C>(pub(crate) C);

impl<C: Controller> Source for Assignments<C> {
    type Item = AgentAssignments;

    fn open(&self) -> BoxFuture<'static, Result<Answers<AgentAssignments>, ControllerError>> {
        let controller = self.0.clone();
        async move { controller.assignments().await }.boxed()
    }

    fn passed(&mut self, _item: &AgentAssignments) {}

    fn silence(&self) -> Option<Duration> {
        None
    }

    fn name(&self) -> &'static str {
        "assignments"
    }
}

/// One model's view.
pub(crate) struct Watch<C> {
    controller: C,
    model: ModelUuid,
    position: Option<WatchPosition>,
}

impl<C: Controller> Watch<C> {
    /// Creates a watch from the beginning.
    pub(crate) fn new(controller: C, model: ModelUuid) -> Self {
        Self { controller, model, position: None }
    }

    /// Returns the position of the last complete frame that was passed on.
    pub(crate) fn position(&self) -> Option<WatchPosition> {
        self.position
    }

    /// Resets the position, so that the next stream starts with the whole view.
    pub(crate) fn forget(&mut self) {
        self.position = None;
    }
}

impl<C: Controller> Source for Watch<C> {
    type Item = FrameLine;

    fn open(&self) -> BoxFuture<'static, Result<Answers<FrameLine>, ControllerError>> {
        let (controller, model, position) = (self.controller.clone(), self.model, self.position);
        async move { controller.watch(model, position).await }.boxed()
    }

    /// Advances at the end of a frame only: an interrupted frame comes again as a whole.
    fn passed(&mut self, line: &FrameLine) {
        if line.is_last() {
            self.position = Some(WatchPosition { store: line.store, revision: line.to });
        }
    }

    fn silence(&self) -> Option<Duration> {
        Some(WATCH_SILENCE)
    }

    fn name(&self) -> &'static str {
        "watch"
    }
}
