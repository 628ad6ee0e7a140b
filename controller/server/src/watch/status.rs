//! Watched statuses: derived and encoded once for all who watch a model's.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use periapt_host_api::{ModelUuid, status::FullStatus};
use tokio::{sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Encoder, Subscriber, Topic, Watches};
use crate::{published::Published, show::StatusSource};

/// How many times as long as making a status took there is none made for watchers: it costs as much as the model is large,
/// and a model that changes all the time must not keep a processor busy with being looked at.
const REST: u32 = 9;

/// A model's status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StatusOf(pub(crate) ModelUuid);

impl Topic for StatusOf {
    type Shared = Statuses;

    /// People read it.
    const PACE: Duration = Duration::from_millis(50);
    /// An agent is lost by the clock alone.
    const AGAIN: Option<Duration> = Some(Duration::from_secs(5));
    const OF_ALL: bool = true;

    fn model(&self) -> ModelUuid {
        self.0
    }

    /// Who is connected and what is wrong with the store are no writes.
    fn differs(&self, before: &Published, after: &Published) -> bool {
        !std::ptr::eq(before, after)
    }
}

/// The newest status of one model.
#[derive(Debug)]
pub(crate) struct Statuses {
    encoder: Encoder,
    newest: Mutex<Newest>,
}

#[derive(Debug, Default)]
struct Newest {
    /// The group's state that was looked at last.
    looked_at: Option<u64>,
    /// What it showed, and its number.
    status: Option<(Arc<FullStatus>, u64)>,
    line: Bytes,
    /// Before then no other is made for those who have seen one.
    rests_until: Option<Instant>,
}

impl Statuses {
    pub(crate) fn new(encoder: Encoder) -> Self {
        Self { encoder, newest: Mutex::default() }
    }

    /// Waits until the next status may be made.
    async fn rested(&self) {
        let until = self.newest.lock().await.rests_until;
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    /// The status at the group's state of a number: its own number, and its line. None once there is no such model.
    async fn at(
        &self,
        number: u64,
        status: impl FnOnce() -> Option<FullStatus> + Send + 'static,
    ) -> Option<(u64, Bytes)> {
        let mut newest = self.newest.lock().await;
        if newest.looked_at.is_none_or(|looked_at| looked_at < number) {
            let last = newest.status.clone();
            let encoder = self.encoder.clone();
            let look = move || {
                let status = status()?;
                let line = match &last {
                    Some((last, _)) if is_the_same(last, &status) => None,
                    _ => Some(encoder.line(&status)),
                };
                Some((status, line))
            };
            let began = Instant::now();
            let made = self.encoder.apart(look).await.flatten();
            newest.rests_until = Some(Instant::now() + began.elapsed() * REST);
            let (status, line) = made?;
            newest.looked_at = Some(number);
            if let Some(line) = line {
                newest.line = line;
                newest.status = Some((Arc::new(status), number));
            }
        }
        newest.status.as_ref().map(|(_, number)| (*number, newest.line.clone()))
    }
}

/// Whether two statuses differ in no more than the time at which they were asked for.
fn is_the_same(last: &FullStatus, next: &FullStatus) -> bool {
    let mut same = next.clone();
    same.controller.timestamp = last.controller.timestamp;
    *last == same
}

/// One watcher of a status: is sent the newest whenever it differs from what it was sent.
pub(crate) struct StatusWatch {
    source: StatusSource,
    subscriber: Subscriber<StatusOf>,
    /// Of which state it has seen the status, and that status' number.
    seen: Option<(u64, u64)>,
}

impl StatusWatch {
    pub(crate) fn new(
        watches: &Watches,
        now: Arc<Published>,
        source: StatusSource,
        model: ModelUuid,
    ) -> Self {
        let statuses = || Statuses::new(watches.encoder.clone());
        let subscriber = watches.statuses.join(StatusOf(model), now, statuses);
        Self { source, subscriber, seen: None }
    }

    /// The next status; none when the model is gone or the controller stops.
    pub(crate) async fn next(&mut self, stop: &CancellationToken) -> Option<Bytes> {
        let next = async {
            loop {
                if self.seen.is_some() {
                    self.subscriber.shared().rested().await;
                }
                let shown = self.subscriber.shown();
                if self.seen.is_some_and(|(at, _)| at == shown.number) {
                    self.subscriber.notified().await;
                    continue;
                }
                let (source, model) = (self.source.clone(), self.subscriber.topic().0);
                let status = move || source.status_of(&shown.published, &model);
                let (number, line) = self.subscriber.shared().at(shown.number, status).await?;
                let known = self.seen.replace((shown.number, number));
                if known.is_none_or(|(_, known)| known != number) {
                    return Some(line);
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => None,
            next = next => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_status_that_took_long_is_not_made_again_at_once() {
        let statuses = Statuses::new(Encoder::default());
        statuses.rested().await;
        // Making it takes time by the clock of this test.
        let began = Instant::now();
        let (advance, advanced) = std::sync::mpsc::channel::<()>();
        let made = statuses.at(1, move || {
            let _ = advanced.recv();
            None
        });
        let moved = async {
            tokio::time::advance(Duration::from_secs(2)).await;
            let _ = advance.send(());
        };
        assert!(tokio::join!(made, moved).0.is_none(), "there is no such model");
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        statuses.rested().await;
        assert_eq!(began.elapsed(), Duration::from_secs(2) * (1 + REST));
    }
}
