//! Indexes: sets by key, derived from entities.

use imbl::{OrdMap, OrdSet};

/// A set for each key. Keys with an empty set are removed.
#[derive(Debug, Clone)]
pub(super) struct Index<K: Ord, V: Ord>(OrdMap<K, OrdSet<V>>);

impl<K: Ord, V: Ord> Default for Index<K, V> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<K: Ord + Clone, V: Ord + Clone> Index<K, V> {
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.0.entry(key).or_default().insert(value);
    }

    pub(super) fn remove(&mut self, key: &K, value: &V) {
        let Some(set) = self.0.get_mut(key) else { return };
        set.remove(value);
        if set.is_empty() {
            self.0.remove(key);
        }
    }

    pub(super) fn get(&self, key: &K) -> impl Iterator<Item = &V> {
        self.0.get(key).into_iter().flatten()
    }

    pub(super) fn len(&self, key: &K) -> usize {
        self.0.get(key).map_or(0, OrdSet::len)
    }
}
