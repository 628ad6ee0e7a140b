//! What readers and watchers see: the durable state, and the states shortly before it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use imbl::OrdMap;
use periapt_host_api::{ModelUuid, Revision, StoreId};
use periapt_model::Root;
use tokio::sync::watch;

/// How many durable states are kept for watchers that come back. They share all that did not change between
/// them, so one costs little more than its commit.
const HISTORY: usize = 256;

/// The durable state at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    /// The model.
    pub(crate) root: Root,
    /// The store whose revisions these are.
    pub(crate) store: StoreId,
    /// When what was written last.
    pub(crate) changed: Changed,
    /// Why nothing can be written now, for people; none: all is well.
    pub(crate) problem: Option<String>,
}

impl Published {
    /// The durable revision.
    pub(crate) fn revision(&self) -> Revision {
        self.root.revision()
    }
}

/// The last revision in which each model was written, and that in which anything outside of models was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changed {
    outside: Revision,
    models: OrdMap<ModelUuid, Revision>,
}

impl Changed {
    /// After a start nothing is known: everything counts as written at the revision that was loaded.
    pub(crate) fn at_start(revision: Revision) -> Self {
        Self { outside: revision, models: OrdMap::new() }
    }

    /// Notes a write outside of models.
    pub(crate) fn note_outside(&mut self, revision: Revision) {
        self.outside = revision;
    }

    /// Notes a write in a model.
    pub(crate) fn note_model(&mut self, model: ModelUuid, revision: Revision) {
        self.models.insert(model, revision);
    }

    /// The revision from which on a model looks as it does now.
    pub(crate) fn model(&self, model: &ModelUuid) -> Revision {
        self.models.get(model).copied().unwrap_or_default().max(self.outside)
    }
}

/// The writer's end: makes states visible.
#[derive(Debug)]
pub(crate) struct Publisher {
    sender: watch::Sender<Arc<Published>>,
    history: Arc<Mutex<History>>,
}

/// A reader's end. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    receiver: watch::Receiver<Arc<Published>>,
    history: Arc<Mutex<History>>,
}

#[derive(Debug)]
struct History {
    store: StoreId,
    roots: VecDeque<Root>,
}

impl Publisher {
    pub(crate) fn new(first: Published) -> Self {
        let history = History { store: first.store, roots: VecDeque::from([first.root.clone()]) };
        Self { sender: watch::Sender::new(Arc::new(first)), history: Arc::new(Mutex::new(history)) }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe(), history: Arc::clone(&self.history) }
    }

    pub(crate) fn current(&self) -> Arc<Published> {
        Arc::clone(&self.sender.borrow())
    }

    /// Makes a state the one that everybody sees.
    pub(crate) fn publish(&self, next: Published) {
        lock(&self.history).push(next.store, &next.root);
        self.sender.send_replace(Arc::new(next));
    }
}

impl Subscription {
    /// The newest durable state. Does not count as seen.
    pub(crate) fn current(&self) -> Arc<Published> {
        Arc::clone(&self.receiver.borrow())
    }

    /// The newest durable state; [`changed`](Self::changed) waits for the next.
    pub(crate) fn seen(&mut self) -> Arc<Published> {
        Arc::clone(&self.receiver.borrow_and_update())
    }

    /// Waits for a state that was not seen. False once there will be none.
    pub(crate) async fn changed(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }

    /// The state at a revision, if it is not too long ago.
    pub(crate) fn at(&self, store: StoreId, revision: Revision) -> Option<Root> {
        lock(&self.history).at(store, revision)
    }
}

impl History {
    fn push(&mut self, store: StoreId, root: &Root) {
        // A store that was opened again may have lost what was never durable: start over.
        let rises = self.roots.back().is_none_or(|last| last.revision() <= root.revision());
        if self.store != store || !rises {
            self.store = store;
            self.roots.clear();
        }
        if self.roots.back().is_some_and(|last| last.revision() == root.revision()) {
            self.roots.pop_back();
        }
        self.roots.push_back(root.clone());
        if self.roots.len() > HISTORY {
            self.roots.pop_front();
        }
    }

    fn at(&self, store: StoreId, revision: Revision) -> Option<Root> {
        if store != self.store {
            return None;
        }
        let index = self.roots.binary_search_by_key(&revision, Root::revision).ok()?;
        self.roots.get(index).cloned()
    }
}

fn lock(history: &Mutex<History>) -> MutexGuard<'_, History> {
    // Each call leaves the history whole.
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use periapt_model::Changes;

    use super::*;

    fn store(number: u128) -> StoreId {
        StoreId(uuid::Uuid::from_u128(number))
    }

    fn root(revision: u64) -> Root {
        Root::default().apply(&Changes::default(), Revision(revision))
    }

    #[test]
    fn the_history_forgets_the_oldest_and_all_of_another_store() {
        let mut history = History { store: store(1), roots: VecDeque::new() };
        for revision in 1..=HISTORY as u64 + 2 {
            history.push(store(1), &root(revision));
        }
        assert!(history.at(store(1), Revision(2)).is_none());
        assert_eq!(history.at(store(1), Revision(3)).unwrap().revision(), Revision(3));
        assert!(history.at(store(2), Revision(3)).is_none());
        assert!(history.at(store(1), Revision(9_999)).is_none());
        history.push(store(1), &root(5));
        assert!(history.at(store(1), Revision(6)).is_none(), "revisions after a fall are another history");
        history.push(store(2), &root(6));
        assert!(history.at(store(1), Revision(5)).is_none());
    }

    #[test]
    fn a_model_changed_when_it_or_the_outside_was_written() {
        let (one, two) = (ModelUuid(uuid::Uuid::from_u128(1)), ModelUuid(uuid::Uuid::from_u128(2)));
        let mut changed = Changed::at_start(Revision(5));
        changed.note_model(one, Revision(7));
        assert_eq!((changed.model(&one), changed.model(&two)), (Revision(7), Revision(5)));
        changed.note_outside(Revision(8));
        assert_eq!((changed.model(&one), changed.model(&two)), (Revision(8), Revision(8)));
    }
}
