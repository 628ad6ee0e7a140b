//! What readers and watchers see: the durable state, and the states shortly before it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use imbl::{OrdMap, ordmap::DiffItem};
use periapt_host_api::{ModelUuid, Revision, StoreId};
use periapt_model::Root;
use periapt_store::Batch;
use tokio::{sync::watch, time::Instant};

/// How many durable states are kept for watchers that come back.
const HISTORY: usize = 256;

/// How much they may hold together, in bytes. They share all that did not change between them, so one holds what its batch
/// replaced; of a model's end that is the whole model.
const HISTORY_BYTES: usize = 8 << 20;

/// How long a state is kept. Who reconnects later than that is sent the whole view.
const HISTORY_AGE: Duration = Duration::from_secs(60);

/// What an entity takes in memory beside its stored form: the nodes of the maps that lead to it, which are copied.
const ENTITY_BYTES: usize = 4 << 10;

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

    /// The models that were written since then; none: it may be any of them.
    pub(crate) fn models_since(&self, then: &Self) -> Option<Vec<ModelUuid>> {
        let written = || then.models.diff(&self.models);
        let model = |item| match item {
            DiffItem::Add(model, _)
            | DiffItem::Remove(model, _)
            | DiffItem::Update { new: (model, _), .. } => *model,
        };
        (self.outside == then.outside).then(|| written().map(model).collect())
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
    states: VecDeque<Former>,
}

/// A durable state, and what came with it.
#[derive(Debug)]
struct Former {
    root: Root,
    /// What its batch replaced: the states before it hold that alone.
    replaced: Weight,
    since: Instant,
}

/// What a batch writes, in bytes of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weight(usize);

impl Weight {
    /// Of a batch.
    pub(crate) fn of(batch: &Batch) -> Self {
        let bytes =
            |(_, value): &(Vec<u8>, Option<Vec<u8>>)| value.as_ref().map_or(0, Vec::len) + ENTITY_BYTES;
        Self(batch.entities.iter().map(bytes).sum())
    }
}

impl Publisher {
    pub(crate) fn new(first: Published) -> Self {
        let mut history = History::new(first.store);
        history.push(first.store, &first.root, Weight::default());
        Self { sender: watch::Sender::new(Arc::new(first)), history: Arc::new(Mutex::new(history)) }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe(), history: Arc::clone(&self.history) }
    }

    pub(crate) fn current(&self) -> Arc<Published> {
        Arc::clone(&self.sender.borrow())
    }

    /// Makes a state the one that everybody sees. `replaced` is what was written for it.
    pub(crate) fn publish(&self, next: Published, replaced: Weight) {
        lock(&self.history).push(next.store, &next.root, replaced);
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

    /// Lets go of states that are too old. Without a commit nobody else does.
    pub(crate) fn forget_old(&self) {
        lock(&self.history).forget_old(Instant::now());
    }
}

impl History {
    fn new(store: StoreId) -> Self {
        Self { store, states: VecDeque::new() }
    }

    fn push(&mut self, store: StoreId, root: &Root, replaced: Weight) {
        let now = Instant::now();
        // A store that was opened again may have lost what was never durable: start over.
        let rises = self.states.back().is_none_or(|last| last.root.revision() <= root.revision());
        if self.store != store || !rises {
            *self = Self::new(store);
        }
        let mut next = Former { root: root.clone(), replaced, since: now };
        if let Some(last) = self.states.pop_back_if(|last| last.root.revision() == root.revision()) {
            next.replaced.0 = next.replaced.0.saturating_add(last.replaced.0);
        }
        self.states.push_back(next);
        let mut weight = self.weight();
        while self.states.len() > HISTORY || weight > HISTORY_BYTES {
            self.states.pop_front();
            let first = self.states.front().map_or(0, |first| first.replaced.0);
            weight = weight.saturating_sub(first);
        }
        self.forget_old(now);
    }

    /// What the states hold that the newest does not: what batches after the first of them replaced.
    fn weight(&self) -> usize {
        self.states.iter().skip(1).fold(0, |sum, state| sum.saturating_add(state.replaced.0))
    }

    /// The newest stays: it is what everybody sees.
    fn forget_old(&mut self, now: Instant) {
        let is_old = |next: &Former| now.duration_since(next.since) >= HISTORY_AGE;
        // A state was the newest until the next one came.
        while self.states.get(1).is_some_and(is_old) {
            self.states.pop_front();
        }
    }

    fn at(&self, store: StoreId, revision: Revision) -> Option<Root> {
        if store != self.store {
            return None;
        }
        let index = self.states.binary_search_by_key(&revision, |state| state.root.revision()).ok()?;
        self.states.get(index).map(|state| state.root.clone())
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

    fn published(revision: u64) -> Published {
        let changed = Changed::at_start(Revision(revision));
        Published { root: root(revision), store: store(1), changed, problem: None }
    }

    #[test]
    fn the_history_forgets_the_oldest_and_all_of_another_store() {
        let mut history = History::new(store(1));
        for revision in 1..=HISTORY as u64 + 2 {
            history.push(store(1), &root(revision), Weight(1));
        }
        assert!(history.at(store(1), Revision(2)).is_none());
        assert_eq!(history.at(store(1), Revision(3)).unwrap().revision(), Revision(3));
        assert!(history.at(store(2), Revision(3)).is_none());
        assert!(history.at(store(1), Revision(9_999)).is_none());
        history.push(store(1), &root(5), Weight(1));
        assert!(history.at(store(1), Revision(6)).is_none(), "revisions after a fall are another history");
        history.push(store(2), &root(6), Weight(1));
        assert!(history.at(store(1), Revision(5)).is_none());
    }

    #[test]
    fn the_history_holds_no_more_than_its_bytes_and_always_the_newest() {
        let mut history = History::new(store(1));
        for revision in 1..=100 {
            history.push(store(1), &root(revision), Weight(HISTORY_BYTES / 10));
            assert!(history.weight() <= HISTORY_BYTES);
        }
        assert_eq!(history.states.len(), 11);
        history.push(store(1), &root(101), Weight(3 * HISTORY_BYTES));
        assert_eq!(history.states.len(), 1, "the end of a large model is held by nobody");
        assert!(history.at(store(1), Revision(101)).is_some());
        // A state that differs in memory alone takes the place of the one before, and what that replaced counts on.
        history.push(store(1), &root(102), Weight(HISTORY_BYTES));
        history.push(store(1), &root(102), Weight::default());
        assert_eq!((history.states.len(), history.weight()), (2, HISTORY_BYTES));
    }

    #[tokio::test(start_paused = true)]
    async fn the_history_is_forgotten_after_a_while_without_commits_too() {
        let publisher = Publisher::new(published(1));
        let seen = publisher.subscribe();
        for revision in 2..5 {
            publisher.publish(published(revision), Weight(1));
        }
        tokio::time::advance(HISTORY_AGE / 2).await;
        publisher.publish(published(5), Weight(1));
        seen.forget_old();
        assert!(seen.at(store(1), Revision(1)).is_some());
        tokio::time::advance(HISTORY_AGE / 2).await;
        seen.forget_old();
        assert!(seen.at(store(1), Revision(3)).is_none());
        assert!(seen.at(store(1), Revision(4)).is_some(), "it was the newest not long ago");
        tokio::time::advance(HISTORY_AGE).await;
        seen.forget_old();
        assert!(seen.at(store(1), Revision(4)).is_none());
        assert!(seen.at(store(1), Revision(5)).is_some(), "it is the newest");
    }

    #[test]
    fn a_model_changed_when_it_or_the_outside_was_written() {
        let (one, two) = (ModelUuid(uuid::Uuid::from_u128(1)), ModelUuid(uuid::Uuid::from_u128(2)));
        let mut changed = Changed::at_start(Revision(5));
        let before = changed.clone();
        changed.note_model(one, Revision(7));
        assert_eq!(changed.models_since(&before), Some(vec![one]));
        assert_eq!(changed.models_since(&changed.clone()), Some(vec![]));
        assert_eq!((changed.model(&one), changed.model(&two)), (Revision(7), Revision(5)));
        changed.note_outside(Revision(8));
        assert_eq!(changed.models_since(&before), None);
        assert_eq!((changed.model(&one), changed.model(&two)), (Revision(8), Revision(8)));
    }
}
