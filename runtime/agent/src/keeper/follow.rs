//! A stream of the controller's that goes on after each break.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use periapt_host_api::{
    ModelUuid, agent::AgentAssignments, api::WatchPosition, timing::WATCH_SILENCE, view::FrameLine,
};
use tokio::time::{Instant, sleep_until};

use super::controller::{Answers, Controller, ControllerError};
use periapt_client::Backoff;

/// What is followed, and from where.
pub(crate) trait Source: Send + 'static {
    /// What comes.
    type Item: Send + 'static;

    /// Asks for the stream, from where it was.
    fn open(&self) -> BoxFuture<'static, Result<Answers<Self::Item>, ControllerError>>;

    /// Takes note of an item that is handed on.
    fn passed(&mut self, item: &Self::Item);

    /// The most time between two items of a stream that lives.
    fn silence(&self) -> Option<Duration>;

    /// For logs.
    fn name(&self) -> &'static str;
}

enum State<T> {
    Closed,
    Waiting(Instant),
    Opening(BoxFuture<'static, Result<Answers<T>, ControllerError>>),
    Open(Answers<T>, Instant),
}

/// A stream that is opened again, from where it was, whenever it ends.
pub(crate) struct Follow<S: Source> {
    source: S,
    state: State<S::Item>,
    backoff: Backoff,
}

impl<S: Source> Follow<S> {
    /// Follows a source; nothing is asked before the first [`Follow::next`].
    pub(crate) fn new(source: S) -> Self {
        Self { source, state: State::Closed, backoff: Backoff::network() }
    }

    /// The source, to change from where it goes on.
    pub(crate) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The source.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// Ends the present stream; the next call of [`Follow::next`] opens one from where this one was.
    pub(crate) fn close(&mut self) {
        if !matches!(self.state, State::Waiting(_)) {
            self.state = State::Closed;
        }
    }

    /// The next item, however long it takes. Can be cancelled without losing one.
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
        tracing::debug!(stream = self.source.name(), %error, ?wait, "a stream broke");
        self.state = State::Waiting(Instant::now() + wait);
    }
}

/// What an agent must run.
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
    /// From nothing.
    pub(crate) fn new(controller: C, model: ModelUuid) -> Self {
        Self { controller, model, position: None }
    }

    /// Up to where frames were handed on.
    pub(crate) fn position(&self) -> Option<WatchPosition> {
        self.position
    }

    /// The next stream is to give all from nothing.
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

    /// A frame that broke off comes again as a whole.
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
