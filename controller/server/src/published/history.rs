//! The former states of each model, for watchers that come back. They are kept by model: a view is made of
//! the state of its own model, and of what all views share, so a model that is written all the time leaves
//! the others their past.

mod sequence;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::{ModelUuid, Revision, StoreId, timing::HEARTBEAT};
use periapt_model::{ModelState, Root, SharedParts};
use tokio::time::Instant;

use self::sequence::{FormerState, Sequence};
use super::{Published, Weight};

/// The longest pause of a watcher that is sent what it missed. After a longer one it gets the whole view.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// The time for which a replaced state is kept. A watcher of a quiet model has learned of a revision with the
/// last heartbeat.
const KEPT_FOR: Duration = Duration::from_secs(130);

const _: () = assert!(
    LONGEST_PAUSE.as_millis() + HEARTBEAT.as_millis() <= KEPT_FOR.as_millis(),
    "what a watcher knew when its pause began is kept"
);

/// The most bytes that all former states hold. They share all unchanged parts, so a state holds only what was
/// replaced after it; at the end of a model that is the whole model. The oldest state of the heaviest
/// sequence is dropped first.
const MAX_BYTES: usize = 64 << 20;

/// The least weight of a former state, in bytes. With the bytes it bounds the number of former states.
const LEAST_BYTES: usize = 4 << 10;

/// A sequence of former states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// The sequence of the parts that all views share.
    Shared,
    /// The sequence of one model.
    Model(ModelUuid),
}

/// The newest durable state, and what it has replaced.
#[derive(Debug)]
pub(super) struct History {
    store: StoreId,
    newest: Root,
    /// The revision before which nothing is known.
    known_from: Revision,
    shared: Sequence<SharedParts>,
    models: BTreeMap<ModelUuid, Sequence<Option<Arc<ModelState>>>>,
    /// The sequences by the time at which their oldest states were replaced.
    by_age: BTreeSet<(Instant, Key)>,
    /// The sequences by their weights.
    by_weight: BTreeSet<(usize, Key)>,
    weight: usize,
}

impl History {
    /// Begins a history with a state.
    pub(super) fn new(first: &Published) -> Self {
        Self {
            store: first.store,
            newest: first.root.clone(),
            known_from: first.revision(),
            shared: Sequence::default(),
            models: BTreeMap::new(),
            by_age: BTreeSet::new(),
            by_weight: BTreeSet::new(),
            weight: 0,
        }
    }

    /// Takes the next state. `replaced` is the weight of its batch.
    pub(super) fn push(&mut self, before: &Published, next: &Published, replaced: Weight) {
        let now = Instant::now();
        // A reopened store may be at a lower revision, and shares nothing with the state before.
        let continues = before.store == next.store && before.revision() <= next.revision();
        let written = next.changed.written_since(&before.changed).filter(|_| continues);
        let Some(written) = written else {
            *self = Self::new(next);
            return;
        };
        let former = std::mem::replace(&mut self.newest, next.root.clone());
        let models = former.replaced_models(&self.newest, written);
        let (shared, until) = (former.shared_parts(), next.revision());
        let shared_differ = !shared.are_the_same(&self.newest.shared_parts());
        let parts = models.len() + usize::from(shared_differ);
        let weight = replaced.0.checked_div(parts).unwrap_or_default().max(LEAST_BYTES);
        if shared_differ {
            let state = FormerState { state: shared, until, replaced_at: now, weight };
            self.change(Key::Shared, |history| history.shared.push(state));
        }
        for uuid in models {
            let state = former.model_or_remains(&uuid).cloned();
            let state = FormerState { state, until, replaced_at: now, weight };
            self.change(Key::Model(uuid), |history| history.models.entry(uuid).or_default().push(state));
        }
        while self.weight > MAX_BYTES
            && let Some((_, heaviest)) = self.by_weight.last().copied()
        {
            self.change(heaviest, |history| history.forget_oldest(heaviest));
        }
        self.forget_old(now);
    }

    /// Drops what was replaced too long ago.
    pub(super) fn forget_old(&mut self, now: Instant) {
        while let Some((oldest, key)) = self.by_age.first().copied()
            && now.duration_since(oldest) >= KEPT_FOR
        {
            self.change(key, |history| {
                let gone = match key {
                    Key::Shared => history.shared.drop_oldest(),
                    Key::Model(uuid) => history.models.get_mut(&uuid).and_then(Sequence::drop_oldest),
                };
                // All positions before it are as old.
                history.known_from = history.known_from.max(gone.unwrap_or_default());
            });
        }
    }

    /// Returns the state at a revision, as far as views of one model show it; none if it is not known any
    /// more.
    pub(super) fn at(&self, store: StoreId, model: &ModelUuid, revision: Revision) -> Option<Root> {
        if store != self.store || revision < self.known_from || revision > self.newest.revision() {
            return None;
        }
        let shared = self.shared.at(revision, || self.newest.shared_parts())?;
        let newest = || self.newest.model_or_remains(model).cloned();
        let state = match self.models.get(model) {
            Some(sequence) => sequence.at(revision, newest)?,
            None => newest(),
        };
        Some(Root::of_one_model(shared, *model, state, revision))
    }

    fn forget_oldest(&mut self, key: Key) {
        match key {
            Key::Shared => self.shared.forget_oldest(),
            Key::Model(uuid) => self.models.entry(uuid).or_default().forget_oldest(),
        }
    }

    /// Changes a sequence, and keeps the orders of sequences up to date.
    fn change(&mut self, key: Key, change: impl FnOnce(&mut Self)) {
        let (oldest, weight) = self.summary(key);
        if let Some(oldest) = oldest {
            self.by_age.remove(&(oldest, key));
            self.by_weight.remove(&(weight, key));
        }
        self.weight = self.weight.saturating_sub(weight);
        change(self);
        let (oldest, weight) = self.summary(key);
        self.weight = self.weight.saturating_add(weight);
        match (oldest, key) {
            (Some(oldest), key) => {
                self.by_age.insert((oldest, key));
                self.by_weight.insert((weight, key));
            }
            (None, Key::Model(uuid)) => drop(self.models.remove(&uuid)),
            (None, Key::Shared) => {}
        }
    }

    /// Returns the age and the weight of a sequence; no age if it is empty.
    fn summary(&self, key: Key) -> (Option<Instant>, usize) {
        match key {
            Key::Shared => (self.shared.oldest(), self.shared.weight()),
            Key::Model(uuid) => match self.models.get(&uuid) {
                Some(sequence) => (sequence.oldest(), sequence.weight()),
                None => (None, 0),
            },
        }
    }
}

#[cfg(test)]
mod tests;
