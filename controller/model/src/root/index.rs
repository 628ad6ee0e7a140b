//! Indexes: sets by key, derived from entities.

use imbl::{OrdMap, OrdSet};

/// A set for each key. Each value is added by one source alone. Keys with an empty set are removed.
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

    pub(super) fn get<'a>(&'a self, key: &K) -> impl Iterator<Item = &'a V> + use<'a, K, V> {
        self.0.get(key).into_iter().flatten()
    }

    /// Returns the values of a key from `first` on.
    pub(super) fn from<'a>(&'a self, key: &K, first: V) -> impl Iterator<Item = &'a V> + use<'a, K, V> {
        self.0.get(key).into_iter().flat_map(move |set| set.range(first.clone()..))
    }

    /// Returns the values that a key has here and another key has in another index. The cost is that of the smaller
    /// set.
    pub(super) fn common<'a, L: Ord + Clone>(
        &'a self,
        key: &K,
        other: &'a Index<L, V>,
        other_key: &L,
    ) -> impl Iterator<Item = &'a V> + use<'a, K, V, L> {
        let both = self.0.get(key).zip(other.0.get(other_key));
        let sorted =
            both.map(|(one, other)| if one.len() <= other.len() { (one, other) } else { (other, one) });
        sorted.into_iter().flat_map(|(few, many)| few.iter().filter(|value| many.contains(*value)))
    }

    pub(super) fn len(&self, key: &K) -> usize {
        self.0.get(key).map_or(0, OrdSet::len)
    }
}

/// A set for each key, to which several sources may add the same value. It stays until each has removed it.
#[derive(Debug, Clone)]
pub(super) struct CountedIndex<K: Ord, V: Ord> {
    values: Index<K, V>,
    sources: OrdMap<(K, V), usize>,
}

impl<K: Ord, V: Ord> Default for CountedIndex<K, V> {
    fn default() -> Self {
        Self { values: Index::default(), sources: OrdMap::new() }
    }
}

impl<K: Ord + Clone, V: Ord + Clone> CountedIndex<K, V> {
    pub(super) fn insert(&mut self, key: K, value: V) {
        *self.sources.entry((key.clone(), value.clone())).or_default() += 1;
        self.values.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: &K, value: &V) {
        let both = (key.clone(), value.clone());
        match self.sources.get_mut(&both) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                self.sources.remove(&both);
                self.values.remove(key, value);
            }
        }
    }

    /// Returns the sets.
    pub(super) fn values(&self) -> &Index<K, V> {
        &self.values
    }
}
