//! The model's view, as the watch's frames make it.

use std::sync::Arc;

use periapt_host_api::{
    Revision, StoreId,
    api::WatchPosition,
    view::{Frame, FrameGap, View},
};
use periapt_uniter::executor::Touched;
use tokio::sync::watch;

/// The view and the store whose revisions it counts by.
#[derive(Debug, Default)]
struct Mirrored {
    store: Option<StoreId>,
    view: View,
    /// What frames changed since [`Mirror::news`] was asked.
    news: Option<News>,
}

/// What some frames changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    /// Of all that units' decisions depend on.
    pub(crate) touched: Touched,
    /// Whether the view is that of another store.
    pub(crate) another_store: bool,
}

impl News {
    /// These and earlier ones.
    fn after(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let touched = match (earlier.touched, self.touched) {
            (Touched::These(mut one), Touched::These(other)) => {
                one.extend(other);
                Touched::These(one)
            }
            _ => Touched::All,
        };
        Self { touched, another_store: earlier.another_store || self.another_store }
    }
}

/// Holds the newest view. Readers get it as a value, at one revision, and are never waited for.
#[derive(Debug, Clone)]
pub(crate) struct Mirror(Arc<watch::Sender<Mirrored>>);

/// Sees each change of a mirror.
#[derive(Debug)]
pub(crate) struct Changes(watch::Receiver<Mirrored>);

impl Default for Mirror {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::default()))
    }
}

impl Mirror {
    /// Applies a frame, whole or not at all. A heartbeat moves the position and wakes nobody.
    pub(crate) fn apply(&self, frame: Frame) -> Result<(), FrameGap> {
        let mut result = Ok(());
        self.0.send_if_modified(|mirrored| {
            let heartbeat = frame.from.is_some() && frame.puts.is_empty() && frame.deletes.is_empty();
            let store = frame.store;
            let touched = Touched::by(&mirrored.view, &frame);
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
                    let news = News { touched, another_store };
                    mirrored.news = Some(news.after(mirrored.news.take()));
                }
            }
            result.is_ok() && !heartbeat
        });
        result
    }

    /// Waits for the first frame.
    pub(crate) async fn filled(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|mirrored| mirrored.store.is_some()).await;
    }

    /// Waits until the view is as wanted, or of another store, in which it may never be.
    pub(crate) async fn wait_for(&self, mut wanted: impl FnMut(&View) -> bool) {
        let store = self.0.borrow().store;
        let as_wanted = |mirrored: &Mirrored| mirrored.store != store || wanted(&mirrored.view);
        let _ = self.0.subscribe().wait_for(as_wanted).await;
    }

    /// Up to where the view is complete; none before the first frame.
    pub(crate) fn position(&self) -> Option<WatchPosition> {
        let mirrored = self.0.borrow();
        mirrored.store.map(|store| WatchPosition { store, revision: mirrored.view.revision })
    }

    /// The newest view.
    pub(crate) fn view(&self) -> View {
        self.0.borrow().view.clone()
    }

    /// Up to where the newest view is complete.
    pub(crate) fn revision(&self) -> Revision {
        self.0.borrow().view.revision
    }

    /// What frames changed since this was asked last; one asks.
    pub(crate) fn news(&self) -> Option<News> {
        let mut news = None;
        self.0.send_if_modified(|mirrored| {
            news = mirrored.news.take();
            false
        });
        news
    }

    /// Sees changes from now on.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }
}

impl Changes {
    /// The newest view. Changes after it are seen by [`Changes::next`].
    pub(crate) fn view(&mut self) -> View {
        self.0.borrow_and_update().view.clone()
    }

    /// Waits until the view is another than the last one that was looked at.
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
        Frame { store, from: from.map(Revision), to: Revision(to), puts: Vec::new(), deletes }
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
