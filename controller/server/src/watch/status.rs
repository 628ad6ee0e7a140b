//! Watched statuses: derived and encoded once for all watchers of a model.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use periapt_host_api::{ModelUuid, status::FullStatus};
use tokio::{sync::Mutex, time::Instant};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Encoder, Subscriber, Topic, Watches};
use crate::{published::Published, show::StatusSource};

/// The pause after making a status, as a multiple of the time that making it took. The cost grows with the model, and
/// watchers of a busy model must not occupy a processor.
const REST: u32 = 9;

/// The topic of a model's status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StatusOf(pub(crate) ModelUuid);

impl Topic for StatusOf {
    type Shared = Statuses;

    /// The readers are people.
    const PACE: Duration = Duration::from_millis(50);
    /// An agent becomes lost by the clock alone.
    const AGAIN: Option<Duration> = Some(Duration::from_secs(5));
    const OF_ALL: bool = true;

    fn model(&self) -> ModelUuid {
        self.0
    }

    /// Presence of agents and problems of the store are no writes, so every state may differ.
    fn differs(&self, before: &Published, after: &Published) -> bool {
        !std::ptr::eq(before, after)
    }
}

/// The newest status of one model.
///
/// Tasks of their own hold the lock: a watcher whose client takes nothing is not polled, and must not keep the others from
/// their status.
#[derive(Debug)]
pub(crate) struct Statuses {
    encoder: Encoder,
    newest: Arc<Mutex<Newest>>,
    /// The time before which no other status is made for watchers that have seen one.
    rests_until: Arc<RestsUntil>,
}

type RestsUntil = parking_lot::Mutex<Option<Instant>>;

#[derive(Debug, Default)]
struct Newest {
    /// The number of the group's state that was looked at last.
    looked_at: Option<u64>,
    /// The status of that state, and the number of the state in which it first appeared.
    status: Option<(Arc<FullStatus>, u64)>,
    line: Bytes,
}

impl Statuses {
    pub(crate) fn new(encoder: Encoder) -> Self {
        Self { encoder, newest: Arc::default(), rests_until: Arc::default() }
    }

    /// Waits until the next status may be made.
    async fn rested(&self) {
        let until = *self.rests_until.lock();
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Returns the status at a state of the group: its own number and its line. Returns none if the model is gone.
    async fn at(
        &self,
        number: u64,
        status: impl FnOnce() -> Option<FullStatus> + Send + 'static,
    ) -> Option<(u64, Bytes)> {
        let (newest, rests_until) = (Arc::clone(&self.newest), Arc::clone(&self.rests_until));
        let encoder = self.encoder.clone();
        let made =
            tokio::spawn(async move { newest.lock().await.at(number, status, &encoder, &rests_until).await });
        // Nobody needs the status of a watcher that is gone. An error means that the task panicked, which is logged.
        AbortOnDropHandle::new(made).await.ok()?
    }
}

impl Newest {
    async fn at(
        &mut self,
        number: u64,
        status: impl FnOnce() -> Option<FullStatus> + Send + 'static,
        encoder: &Encoder,
        rests_until: &RestsUntil,
    ) -> Option<(u64, Bytes)> {
        if self.looked_at.is_none_or(|looked_at| looked_at < number) {
            let (last, lines) = (self.status.clone(), encoder.clone());
            let look = move || {
                let status = status()?;
                let line = match &last {
                    Some((last, _)) if is_the_same(last, &status) => None,
                    _ => Some(lines.line(&status)),
                };
                Some((status, line))
            };
            let began = Instant::now();
            let made = encoder.apart(look).await.flatten();
            *rests_until.lock() = Some(Instant::now() + began.elapsed() * REST);
            let (status, line) = made?;
            self.looked_at = Some(number);
            if let Some(line) = line {
                self.line = line;
                self.status = Some((Arc::new(status), number));
            }
        }
        self.status.as_ref().map(|(_, number)| (*number, self.line.clone()))
    }
}

/// Returns true if two statuses differ only in the controller's time, and in the positions of this controller and of the
/// others of its log, which every write moves.
fn is_the_same(last: &FullStatus, next: &FullStatus) -> bool {
    let mut same = next.clone();
    same.controller.timestamp = last.controller.timestamp;
    same.controller.revision = last.controller.revision;
    for (name, member) in &mut same.controller.members {
        if let Some(known) = last.controller.members.get(name) {
            (member.revision, member.behind) = (known.revision, known.behind);
        }
    }
    *last == same
}

/// One watcher of a status. It is sent the newest status whenever that differs from the last one sent.
pub(crate) struct StatusWatch {
    source: StatusSource,
    subscriber: Subscriber<StatusOf>,
    /// The number of the last state that was seen, and the number of its status.
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

    /// Returns the next status, or none when the model is gone or the controller stops.
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
                let status = move || {
                    let mut status = source.status_of(&shown.published, &model)?;
                    status.controller.revision = Some(shown.published.revision());
                    Some(status)
                };
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
    use std::pin::pin;

    use futures_util::FutureExt as _;
    use periapt_host_api::{Revision, command::MemberRole, status::MemberStatus};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_positions_of_controllers_are_no_news_and_their_roles_are() {
        let status = |revision, role| {
            let model = json!({
                "name": "m", "type": "iaas", "controller": "home", "cloud": "periapt", "version": "3.6.0",
                "model-status": { "current": "available" },
            });
            let controller = json!({ "timestamp": "2026-01-02T03:04:05Z", "engine": "wasmtime" });
            let status =
                json!({ "model": model, "machines": {}, "applications": {}, "controller": controller });
            let mut status: FullStatus = serde_json::from_value(status).unwrap();
            let member =
                MemberStatus { role, revision: Revision(revision), behind: 9 - revision, stale: false };
            status.controller.members.insert("node-1".into(), member);
            status.controller.revision = Some(Revision(revision));
            status
        };
        let last = status(7, MemberRole::Follower);
        assert!(is_the_same(&last, &status(8, MemberRole::Follower)));
        assert!(!is_the_same(&last, &status(7, MemberRole::Leader)));
        let mut fewer = last.clone();
        fewer.controller.members.clear();
        assert!(!is_the_same(&last, &fewer) && !is_the_same(&fewer, &last));
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_took_long_is_not_made_again_at_once() {
        let statuses = Statuses::new(Encoder::default());
        statuses.rested().await;
        // The clock of this test advances while the status is made.
        let began = Instant::now();
        let (advance, advanced) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let made = statuses.at(1, move || {
            let _ = begin.send(());
            let _ = advanced.recv();
            None
        });
        let moved = async {
            begun.await.unwrap();
            tokio::time::advance(Duration::from_secs(2)).await;
            let _ = advance.send(());
        };
        assert!(tokio::join!(made, moved).0.is_none(), "there is no such model");
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        statuses.rested().await;
        assert_eq!(began.elapsed(), Duration::from_secs(2) * (1 + REST));
    }

    #[tokio::test]
    async fn a_watcher_that_is_not_polled_keeps_no_other_from_its_status() {
        let statuses = Statuses::new(Encoder::default());
        let (look, looked_at) = std::sync::mpsc::channel::<()>();
        let mut stuck = pin!(statuses.at(1, move || {
            let _ = looked_at.recv();
            None
        }));
        assert!(stuck.as_mut().now_or_never().is_none());
        look.send(()).unwrap();
        let other = tokio::time::timeout(Duration::from_secs(60), statuses.at(2, || None));
        assert!(other.await.unwrap().is_none(), "there is no such model");
    }
}
