//! The runner's copy of the model's view, updated by the frames of a watch.

use std::sync::Arc;

use periapt_host_api::{
    Revision, StoreId,
    api::WatchPosition,
    trace::{MAX_FRAME_TRACES, RevisionTrace},
    view::{Frame, FrameGap, View},
};
use periapt_uniter::executor::ChangedDependencies;
use tokio::sync::watch;

/// The view, and the store that its revision belongs to.
#[derive(Debug, Default)]
struct Mirrored {
    store: Option<StoreId>,
    view: View,
    /// The changes since the last call of [`Mirror::news`].
    news: Option<MirrorChanges>,
}

/// The changes of some frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MirrorChanges {
    /// The changed inputs of units' decisions.
    pub(crate) changed: ChangedDependencies,
    /// True if the view is from another store.
    pub(crate) another_store: bool,
    /// The traced commands that made these changes: the newest, in order, at most [`MAX_FRAME_TRACES`].
    pub(crate) traces: Vec<RevisionTrace>,
}

impl MirrorChanges {
    /// Merges these changes with earlier ones.
    fn after(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let changed = match (earlier.changed, self.changed) {
            (ChangedDependencies::These(mut one), ChangedDependencies::These(other)) => {
                one.extend(other);
                ChangedDependencies::These(one)
            }
            _ => ChangedDependencies::All,
        };
        let mut traces = earlier.traces;
        traces.extend(self.traces);
        traces.drain(..traces.len().saturating_sub(MAX_FRAME_TRACES));
        Self { changed, another_store: earlier.another_store || self.another_store, traces }
    }
}

/// The newest view. A reader gets a copy at one revision, and never blocks updates.
#[derive(Debug, Clone)]
pub(crate) struct Mirror(Arc<watch::Sender<Mirrored>>);

/// A receiver of the changes of a mirror.
#[derive(Debug)]
pub(crate) struct Changes(watch::Receiver<Mirrored>);

impl Default for Mirror {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::default()))
    }
}

impl Mirror {
    /// Applies a frame, whole or not at all. A heartbeat only advances the position, and wakes no
    /// reader.
    pub(crate) fn apply(&self, mut frame: Frame) -> Result<(), FrameGap> {
        let traces = std::mem::take(&mut frame.traces);
        let mut result = Ok(());
        self.0.send_if_modified(|mirrored| {
            let heartbeat = frame.from.is_some() && frame.puts.is_empty() && frame.deletes.is_empty();
            let store = frame.store;
            let changed = ChangedDependencies::by(&mirrored.view, &frame);
            let another_store = mirrored.store.is_some_and(|before| before != store);
            result = match (frame.from, mirrored.store) {
                (Some(from), before) if before != Some(store) => {
                    Err(FrameGap { from, have: mirrored.view.revision })
                }
                _ => mirrored.view.apply(frame),
            };
            if result.is_ok() {
                mirrored.store = Some(store);
                if !heartbeat {
                    let news = MirrorChanges { changed, another_store, traces };
                    mirrored.news = Some(news.after(mirrored.news.take()));
                }
            }
            result.is_ok() && !heartbeat
        });
        result
    }

    /// Waits for the first frame.
    pub(crate) async fn filled(&self) {
        // The sender lives as long as this mirror.
        let _ = self.0.subscribe().wait_for(|mirrored| mirrored.store.is_some()).await;
    }

    /// Waits until the view satisfies `wanted`, or comes from another store, where it may never do
    /// so.
    pub(crate) async fn wait_for(&self, mut wanted: impl FnMut(&View) -> bool) {
        let store = self.0.borrow().store;
        let as_wanted = |mirrored: &Mirrored| mirrored.store != store || wanted(&mirrored.view);
        let _ = self.0.subscribe().wait_for(as_wanted).await;
    }

    /// Returns the position up to which the view is complete; none before the first frame.
    pub(crate) fn position(&self) -> Option<WatchPosition> {
        let mirrored = self.0.borrow();
        mirrored.store.map(|store| WatchPosition { store, revision: mirrored.view.revision })
    }

    /// Returns the newest view.
    pub(crate) fn view(&self) -> View {
        self.0.borrow().view.clone()
    }

    /// Returns the revision of the newest view.
    pub(crate) fn revision(&self) -> Revision {
        self.0.borrow().view.revision
    }

    /// Takes the changes since the last call. There is only one caller.
    pub(crate) fn news(&self) -> Option<MirrorChanges> {
        let mut news = None;
        self.0.send_if_modified(|mirrored| {
            news = mirrored.news.take();
            false
        });
        news
    }

    /// Returns a receiver of changes from now on.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }
}

impl Changes {
    /// Returns the newest view. [`Changes::next`] reports later changes.
    pub(crate) fn view(&mut self) -> View {
        self.0.borrow_and_update().view.clone()
    }

    /// Waits until the view differs from the last one that was returned.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::view::ViewKey;
    use uuid::Uuid;

    use super::*;

    fn frame(store: u128, from: Option<u64>, to: u64) -> Frame {
        let deletes = vec![ViewKey::Model];
        let store = StoreId(Uuid::from_u128(store));
        Frame {
            store,
            from: from.map(Revision),
            to: Revision(to),
            puts: Vec::new(),
            deletes,
            traces: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_frame_that_does_not_fit_changes_nothing() {
        let mirror = Mirror::default();
        mirror.apply(frame(1, None, 5)).unwrap();
        mirror.apply(frame(1, Some(4), 6)).unwrap_err();
        mirror.apply(frame(2, Some(5), 6)).unwrap_err();
        assert_eq!(mirror.position().unwrap().revision, Revision(5));
        mirror.apply(frame(2, None, 3)).unwrap();
        assert_eq!(mirror.position().unwrap().revision, Revision(3));
    }

    #[tokio::test]
    async fn a_heartbeat_moves_the_position_and_wakes_nobody() {
        let mirror = Mirror::default();
        mirror.apply(frame(1, None, 5)).unwrap();
        let mut changes = mirror.changes();
        changes.view();
        mirror.apply(Frame { deletes: Vec::new(), ..frame(1, Some(5), 7) }).unwrap();
        assert_eq!(mirror.position().unwrap().revision, Revision(7));
        assert!(!changes.0.has_changed().unwrap());
        mirror.apply(frame(1, Some(7), 8)).unwrap();
        changes.next().await;
    }
}
