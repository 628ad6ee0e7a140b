//! Watches: streams that keep clients up to date with what they may see (`docs/design/views.md`).
//!
//! All watchers of the same topic form one watcher group. Its notifier ([`Notifier`]) shows it one state after the
//! other, and each answer is encoded once for the whole group.

mod encoder;
mod log;
mod notifier;
mod status;
mod view;

use std::sync::Arc;

use bytes::Bytes;
use periapt_host_api::{ModelUuid, Revision, api::WatchPosition};
use tokio_util::sync::CancellationToken;

pub(crate) use encoder::Encoder;
pub(crate) use log::LogOf;
pub(crate) use notifier::{Notifier, Subscriber, Topic};
pub(crate) use status::{StatusOf, StatusWatch};
pub(crate) use view::{Frames, ViewOf};

use crate::{
    metrics::metrics,
    published::{Published, Subscription},
};
use view::{Audience, SentView};

/// All watcher groups of a controller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches {
    pub(crate) views: Notifier<ViewOf>,
    pub(crate) statuses: Notifier<StatusOf>,
    pub(crate) logs: Notifier<LogOf>,
    pub(crate) encoder: Encoder,
}

impl Watches {
    /// Notifies all watchers of new states, until the controller stops.
    pub(crate) async fn run(self, state: Subscription, stop: CancellationToken) {
        tokio::join!(
            self.views.run(state.clone(), stop.clone()),
            self.statuses.run(state.clone(), stop.clone()),
            self.logs.run(state, stop),
        );
    }
}

/// One runner's watch. It holds only the view that was sent last. The next frame is made when the one before was
/// handed over, so a slow reader gets fewer and wider frames.
pub(crate) struct Watch {
    subscriber: Subscriber<ViewOf>,
    progress: Progress,
}

enum Progress {
    /// Nothing was sent yet; the position is the watcher's last one.
    Asked(Subscription, Option<WatchPosition>),
    /// The view that was sent last, at this number of the group's state.
    Sent(Arc<SentView>, u64),
}

impl Watch {
    pub(crate) fn new(
        watches: &Watches,
        state: Subscription,
        of: ViewOf,
        position: Option<WatchPosition>,
    ) -> Self {
        let frames = || Frames::new(&of, watches.encoder.clone());
        let current = state.current();
        let seen = position.filter(|seen| seen.store == current.store && seen.revision <= current.revision());
        let seen = seen.map_or(Revision(0), |seen| seen.revision);
        let subscriber = watches.views.join_after(seen, of.clone(), current, frames);
        Self { subscriber, progress: Progress::Asked(state, position) }
    }

    /// Returns the next frame: the first at once, then one after each write in the model, or a heartbeat. Returns
    /// none when the watch is over.
    pub(crate) async fn next(&mut self, stop: &CancellationToken) -> Option<Bytes> {
        let frame = async {
            loop {
                let shown = self.subscriber.shown();
                let from = match &self.progress {
                    Progress::Sent(_, number) if *number == shown.number => {
                        self.subscriber.notified().await;
                        continue;
                    }
                    Progress::Sent(sent, _) => Some(Arc::clone(sent)),
                    Progress::Asked(state, position) => {
                        Box::pin(resumed(&self.subscriber, state, *position)).await
                    }
                };
                let from = from.filter(|from| from.continues_to(&shown.published));
                let audience = || match self.subscriber.is_alone() {
                    true => Audience::One,
                    false => Audience::Several,
                };
                // In boxes of their own: a watcher holds no room for them while it waits.
                let made = Box::pin(self.subscriber.shared().to(from.as_ref(), &shown.published, audience));
                let (frame, seen) = made.await?;
                measure(&frame, from.as_deref(), &shown.published, &self.subscriber.topic().model);
                self.progress = Progress::Sent(seen, shown.number);
                return Some(frame);
            }
        };
        tokio::select! {
            () = stop.cancelled() => None,
            frame = frame => frame,
        }
    }
}

/// Tells the metrics of a frame that is sent.
fn measure(frame: &Bytes, from: Option<&SentView>, to: &Published, model: &ModelUuid) {
    let kind = match from {
        None => "full",
        Some(from) if to.changed.model(model) > from.revision() => "change",
        Some(_) => "heartbeat",
    };
    if kind == "change" {
        metrics().watch_lag.took(&[], to.since.elapsed());
    }
    metrics().frames.inc(&[kind]);
    metrics().frame_bytes.add(&[], frame.len() as u64);
}

/// Returns the view at the position of a watcher that reconnects, if that state is still kept.
async fn resumed(
    subscriber: &Subscriber<ViewOf>,
    state: &Subscription,
    position: Option<WatchPosition>,
) -> Option<Arc<SentView>> {
    let position = position?;
    let root = state.at(position.store, &subscriber.topic().model, position.revision)?;
    subscriber.shared().seen_at(position.store, root).await
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{AgentName, StoreId, timing::HEARTBEAT, view::Frame};
    use periapt_model::{Changes, Root};
    use tokio::time::Instant;

    use super::*;
    use crate::published::{Changed, Origin, Publisher, Weight};

    const STORE: StoreId = StoreId(uuid::Uuid::from_u128(1));
    const OWN: ModelUuid = ModelUuid(uuid::Uuid::from_u128(2));
    const OTHER: ModelUuid = ModelUuid(uuid::Uuid::from_u128(3));

    fn at(revision: u64) -> Published {
        let root = Root::default().apply(&Changes::default(), Revision(revision));
        Published {
            root,
            store: STORE,
            changed: Changed::at_start(Revision(5)),
            problem: None,
            since: Instant::now(),
        }
    }

    fn wrote(revision: u64, model: ModelUuid) -> Published {
        let mut published = at(revision);
        published.changed.note_model(model, Revision(revision));
        published
    }

    /// A published state with a notifier for its watchers.
    struct Watched {
        publisher: Publisher,
        watches: Watches,
        stop: CancellationToken,
    }

    impl Watched {
        fn new() -> Self {
            let (publisher, watches, stop) =
                (Publisher::new(at(5), Origin::Writer), Watches::default(), CancellationToken::new());
            tokio::spawn(watches.clone().run(publisher.subscribe(), stop.clone()));
            Self { publisher, watches, stop }
        }

        fn publish(&self, next: Published) {
            self.publisher.publish(next, Weight::default());
        }

        fn watch(&self, position: Option<u64>) -> Watch {
            let of = ViewOf { agent: AgentName::new("one").unwrap(), model: OWN };
            let position =
                position.map(|revision| WatchPosition { store: STORE, revision: Revision(revision) });
            Watch::new(&self.watches, self.publisher.subscribe(), of, position)
        }
    }

    async fn next(watch: &mut Watch) -> (Option<u64>, u64) {
        let line = watch.next(&CancellationToken::new()).await.unwrap();
        assert_eq!(line.last(), Some(&b'\n'));
        let frame: Frame = serde_json::from_slice(&line).unwrap();
        assert!(frame.puts.is_empty() && frame.deletes.is_empty());
        (frame.from.map(|from| from.0), frame.to.0)
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_in_the_model_is_told_at_once_and_others_with_the_heartbeat() {
        let watched = Watched::new();
        let mut watch = watched.watch(None);
        let start = tokio::time::Instant::now();
        assert_eq!(next(&mut watch).await, (None, 5));
        watched.publish(wrote(6, OWN));
        assert_eq!(next(&mut watch).await, (Some(5), 6));
        assert!(start.elapsed() < HEARTBEAT);
        watched.publish(wrote(7, OTHER));
        assert_eq!(next(&mut watch).await, (Some(6), 7));
        assert!(start.elapsed() >= HEARTBEAT);
        assert_eq!(next(&mut watch).await, (Some(7), 7));
        assert!(start.elapsed() >= 2 * HEARTBEAT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_position_is_continued_from_and_a_fallen_store_starts_over() {
        let watched = Watched::new();
        watched.publish(wrote(6, OWN));
        let mut known = watched.watch(Some(5));
        assert_eq!(next(&mut known).await, (Some(5), 6));
        assert_eq!(next(&mut watched.watch(Some(4))).await, (None, 6));
        watched.publish(at(5));
        assert_eq!(next(&mut known).await, (None, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_comes_from_another_controller_is_not_shown_the_state_before() {
        let watched = Watched::new();
        let mut early = watched.watch(None);
        assert_eq!(next(&mut early).await, (None, 5));
        // Its group is not shown this, because nothing in the model was written.
        watched.publish(wrote(6, OTHER));
        assert_eq!(next(&mut watched.watch(Some(6))).await, (Some(6), 6));
        assert_eq!(next(&mut early).await, (Some(5), 6));
    }

    #[tokio::test]
    async fn a_watch_ends_when_it_is_told_to() {
        let watched = Watched::new();
        let mut watch = watched.watch(None);
        assert!(watch.next(&watched.stop).await.is_some());
        watched.stop.cancel();
        assert!(watch.next(&watched.stop).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_waits_holds_no_room_for_the_making_of_frames() {
        let watched = Watched::new();
        let mut watch = watched.watch(None);
        assert_eq!(next(&mut watch).await, (None, 5));
        let waiting = watch.next(&watched.stop);
        assert!(size_of_val(&waiting) <= 512, "{} bytes", size_of_val(&waiting));
    }

    #[tokio::test(start_paused = true)]
    async fn who_sees_alike_is_told_by_one_encoding_a_commit() {
        const WATCHERS: usize = 100;
        let watched = Watched::new();
        let mut watches: Vec<Watch> = (0..WATCHERS).map(|_| watched.watch(None)).collect();
        for watch in &mut watches {
            assert_eq!(next(watch).await, (None, 5));
        }
        assert_eq!(watched.watches.encoder.encoded(), 1);
        for revision in 6..10 {
            watched.publish(wrote(revision, OWN));
            for watch in &mut watches {
                assert_eq!(next(watch).await, (Some(revision - 1), revision));
            }
        }
        assert_eq!(watched.watches.encoder.encoded(), 1 + 4);
        // A heartbeat takes one encoding, and so do all watchers that reconnect with the same position.
        for watch in &mut watches {
            assert_eq!(next(watch).await, (Some(9), 9));
        }
        assert_eq!(watched.watches.encoder.encoded(), 1 + 4 + 1);
        drop(watches);
        let mut resumed: Vec<Watch> = (0..WATCHERS).map(|_| watched.watch(Some(7))).collect();
        for watch in &mut resumed {
            assert_eq!(next(watch).await, (Some(7), 9));
        }
        assert_eq!(watched.watches.encoder.encoded(), 1 + 4 + 1 + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_reads_late_costs_one_wider_frame_and_the_others_nothing() {
        let watched = Watched::new();
        let (mut prompt, mut late) = (watched.watch(None), watched.watch(None));
        assert_eq!((next(&mut prompt).await, next(&mut late).await), ((None, 5), (None, 5)));
        for revision in 6..60 {
            watched.publish(wrote(revision, OWN));
            assert_eq!(next(&mut prompt).await, (Some(revision - 1), revision));
        }
        let before = watched.watches.encoder.encoded();
        assert_eq!(next(&mut late).await, (Some(5), 59));
        assert_eq!(watched.watches.encoder.encoded(), before + 1);
    }
}
