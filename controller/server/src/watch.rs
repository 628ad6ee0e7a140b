//! A watch: the frames that keep one runner's mirror equal to its view (`design.md` section 3, item 3).

use std::time::Duration;

use periapt_host_api::{
    ModelUuid, StoreId,
    api::{HEARTBEAT_SECONDS, WatchPosition},
    command::Caller,
    view::{Frame, View},
};
use periapt_model::{Root, follow, view};
use tokio_util::sync::CancellationToken;

use crate::published::{Published, Subscription};

const HEARTBEAT: Duration = Duration::from_secs(HEARTBEAT_SECONDS);

/// One runner's watch. It holds the view that was sent last and nothing else: a frame is made when the one
/// before was handed over, so a slow reader gets fewer and wider ones.
pub(crate) struct Watch {
    state: Subscription,
    caller: Caller,
    model: ModelUuid,
    progress: Progress,
}

enum Progress {
    /// Nothing was sent; the watcher says that it is here.
    Asked(Option<WatchPosition>),
    /// This was sent.
    Sent(Box<Sent>),
}

struct Sent {
    store: StoreId,
    view: View,
    /// What the view was made from: the next is found by what differs from it. Renewed with every heartbeat, so that
    /// no watch keeps old states alive.
    root: Root,
}

impl Watch {
    pub(crate) fn new(
        state: Subscription,
        caller: Caller,
        model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> Self {
        Self { state, caller, model, progress: Progress::Asked(position) }
    }

    /// The next frame: the first at once, then whenever the model was written, else a heartbeat. None when the
    /// watch is over.
    pub(crate) async fn next(&mut self, stop: &CancellationToken) -> Option<Frame> {
        let heartbeat = tokio::time::sleep(HEARTBEAT);
        tokio::pin!(heartbeat);
        loop {
            let published = self.state.seen();
            if let Some(frame) = self.step(&published) {
                return Some(frame);
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                alive = self.state.changed() => if !alive { return None },
                () = &mut heartbeat => return Some(self.advance(&published)),
            }
        }
    }

    /// The frame that is due at a state, if one is.
    fn step(&mut self, published: &Published) -> Option<Frame> {
        match &self.progress {
            Progress::Asked(position) => {
                let known = position.and_then(|position| {
                    let root = self.state.at(position.store, position.revision)?;
                    Some(Sent { store: position.store, view: view(&root, &self.caller), root })
                });
                match known.filter(|known| continues(known, published)) {
                    None => Some(self.replace(published)),
                    Some(known) => {
                        self.progress = Progress::Sent(Box::new(known));
                        Some(self.advance(published))
                    }
                }
            }
            Progress::Sent(sent) if !continues(sent, published) => Some(self.replace(published)),
            // A frame without content, too, tells that a revision is reached: who committed waits for it.
            Progress::Sent(sent) => {
                (published.changed.model(&self.model) > sent.view.revision).then(|| self.advance(published))
            }
        }
    }

    /// From what was sent to a state.
    fn advance(&mut self, published: &Published) -> Frame {
        let Progress::Sent(sent) = &mut self.progress else { return self.replace(published) };
        let next = follow(&sent.root, &sent.view, &published.root, &self.caller);
        let frame = sent.view.frame_to(&next, published.store);
        sent.view = next;
        sent.root = published.root.clone();
        frame
    }

    /// From nothing to a state.
    fn replace(&mut self, published: &Published) -> Frame {
        let sent = Sent {
            store: published.store,
            view: view(&published.root, &self.caller),
            root: published.root.clone(),
        };
        let frame = sent.view.full_frame(sent.store);
        self.progress = Progress::Sent(Box::new(sent));
        frame
    }
}

/// Whether a state is a later one of the same history.
fn continues(sent: &Sent, published: &Published) -> bool {
    sent.store == published.store && sent.view.revision <= published.revision()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{AgentName, Revision};
    use periapt_model::Changes;

    use super::*;
    use crate::published::{Changed, Publisher};

    const STORE: StoreId = StoreId(uuid::Uuid::from_u128(1));
    const OWN: ModelUuid = ModelUuid(uuid::Uuid::from_u128(2));
    const OTHER: ModelUuid = ModelUuid(uuid::Uuid::from_u128(3));

    fn at(revision: u64) -> Published {
        let root = Root::default().apply(&Changes::default(), Revision(revision));
        Published { root, store: STORE, changed: Changed::at_start(Revision(5)), problem: None }
    }

    fn wrote(revision: u64, model: ModelUuid) -> Published {
        let mut published = at(revision);
        published.changed.note_model(model, Revision(revision));
        published
    }

    fn watch(publisher: &Publisher, position: Option<u64>) -> Watch {
        let caller = Caller::Runner { agent: AgentName::new("one").unwrap(), model: OWN };
        let position = position.map(|revision| WatchPosition { store: STORE, revision: Revision(revision) });
        Watch::new(publisher.subscribe(), caller, OWN, position)
    }

    async fn next(watch: &mut Watch) -> (Option<u64>, u64) {
        let frame = watch.next(&CancellationToken::new()).await.unwrap();
        assert!(frame.puts.is_empty() && frame.deletes.is_empty());
        (frame.from.map(|from| from.0), frame.to.0)
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_in_the_model_is_told_at_once_and_others_with_the_heartbeat() {
        let publisher = Publisher::new(at(5));
        let mut watch = watch(&publisher, None);
        let start = tokio::time::Instant::now();
        assert_eq!(next(&mut watch).await, (None, 5));
        publisher.publish(wrote(6, OWN));
        assert_eq!(next(&mut watch).await, (Some(5), 6));
        assert!(start.elapsed() < HEARTBEAT);
        publisher.publish(wrote(7, OTHER));
        assert_eq!(next(&mut watch).await, (Some(6), 7));
        assert!(start.elapsed() >= HEARTBEAT);
        assert_eq!(next(&mut watch).await, (Some(7), 7));
        assert!(start.elapsed() >= 2 * HEARTBEAT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_position_is_continued_from_and_a_fallen_store_starts_over() {
        let publisher = Publisher::new(at(5));
        publisher.publish(wrote(6, OWN));
        let mut known = watch(&publisher, Some(5));
        assert_eq!(next(&mut known).await, (Some(5), 6));
        assert_eq!(next(&mut watch(&publisher, Some(4))).await, (None, 6));
        publisher.publish(at(5));
        assert_eq!(next(&mut known).await, (None, 5));
    }

    #[tokio::test]
    async fn a_watch_ends_when_it_is_told_to() {
        let publisher = Publisher::new(at(5));
        let mut watch = watch(&publisher, None);
        let stop = CancellationToken::new();
        assert!(watch.next(&stop).await.is_some());
        stop.cancel();
        assert!(watch.next(&stop).await.is_none());
        drop(publisher);
        assert!(watch.next(&CancellationToken::new()).await.is_none());
    }
}
