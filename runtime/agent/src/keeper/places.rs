//! Places among a bounded number for each key, such as the connections of one unit.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// The places of each key. Clones share them.
#[derive(Debug)]
pub(crate) struct Places<K: Ord> {
    taken: Arc<Mutex<BTreeMap<K, usize>>>,
    of_each: usize,
}

impl<K: Ord> Clone for Places<K> {
    fn clone(&self) -> Self {
        Self { taken: Arc::clone(&self.taken), of_each: self.of_each }
    }
}

/// A taken place, which is free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Ord> {
    taken: Arc<Mutex<BTreeMap<K, usize>>>,
    key: K,
}

impl<K: Ord + Clone> Places<K> {
    /// Creates this number of free places for each key.
    pub(crate) fn new(of_each: usize) -> Self {
        Self { taken: Arc::default(), of_each }
    }

    /// Takes a place of a key, unless all are taken.
    pub(crate) fn take(&self, key: K) -> Option<Place<K>> {
        let mut taken = self.taken.lock();
        if taken.get(&key).copied().unwrap_or_default() >= self.of_each {
            return None;
        }
        *taken.entry(key.clone()).or_default() += 1;
        drop(taken);
        Some(Place { taken: Arc::clone(&self.taken), key })
    }

    /// Returns true if all places are free.
    #[cfg(test)]
    pub(crate) fn are_free(&self) -> bool {
        self.taken.lock().is_empty()
    }
}

impl<K: Ord> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_and_nothing_of_a_key_without_places_is_kept() {
        let places = Places::new(2);
        let taken = [places.take("a"), places.take("a"), places.take("b")];
        assert!(taken.iter().all(Option::is_some) && places.take("a").is_none());
        drop(taken);
        assert!(places.are_free() && places.take("a").is_some());
        assert!(Places::new(0).take("a").is_none());
    }
}
