//! The tables of entities: maps by key.

use std::{fmt, ops::Deref, sync::Arc};

use imbl::{OrdMap, ordmap::DiffItem};
use periapt_host_api::{
    RelationId, UnitName,
    relation::{BagKey, BagOwner},
    state::StateKey,
};

use crate::entity::Kind;

/// The change of one entity between two states. At least one of both states has it.
#[derive(Debug)]
pub(crate) struct Change<'a, V> {
    /// The old entity, if there was one.
    pub(crate) old: Option<&'a Arc<V>>,
    /// The new entity, if there is one.
    pub(crate) new: Option<&'a Arc<V>>,
}

impl<'a, V: Kind> Change<'a, V> {
    /// Returns the new entity, or else the old one.
    pub(crate) fn either(&self) -> Option<&'a Arc<V>> {
        self.new.or(self.old)
    }

    /// Returns both, if the entity was neither added nor removed.
    pub(crate) fn both(&self) -> Option<(&'a Arc<V>, &'a Arc<V>)> {
        self.old.zip(self.new)
    }
}

/// A map by the key.
#[derive(Debug, Clone)]
pub(super) struct Flat<V: Kind>(OrdMap<V::Key, Arc<V>>);

impl<V: Kind> Default for Flat<V> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<V: Kind> Deref for Flat<V> {
    type Target = OrdMap<V::Key, Arc<V>>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V: Kind> Flat<V> {
    /// Returns the entity under a key.
    pub(super) fn find(&self, key: &V::Key) -> Option<&Arc<V>> {
        self.0.get(key)
    }

    /// Puts or deletes an entity, and returns the old one.
    pub(super) fn put(&mut self, key: &V::Key, entity: Option<&Arc<V>>) -> Option<Arc<V>> {
        match entity {
            Some(entity) => self.0.insert(key.clone(), Arc::clone(entity)),
            None => self.0.remove(key),
        }
    }

    /// Returns all entities, by key.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<V>> {
        self.0.values()
    }

    /// Returns the differences to a later table. Shared parts of the maps are skipped.
    pub(super) fn changes<'a>(&'a self, newer: &'a Self) -> Vec<Change<'a, V>> {
        changes(&self.0, &newer.0).map(|(_, old, new)| Change { old, new }).collect()
    }
}

/// A key of two parts.
pub(super) trait Parts {
    /// The part by which entities are grouped.
    type First: Clone + fmt::Debug + Ord;
    /// The part that identifies an entity in its group.
    type Second: Clone + fmt::Debug + Ord;

    /// Returns both parts.
    fn parts(&self) -> (&Self::First, &Self::Second);
}

impl<First: Clone + fmt::Debug + Ord, Second: Clone + fmt::Debug + Ord> Parts for (First, Second) {
    type First = First;
    type Second = Second;
    fn parts(&self) -> (&First, &Second) {
        (&self.0, &self.1)
    }
}

impl Parts for BagKey {
    type First = RelationId;
    type Second = BagOwner;
    fn parts(&self) -> (&RelationId, &BagOwner) {
        (&self.relation, &self.owner)
    }
}

impl Parts for StateKey {
    type First = UnitName;
    type Second = String;
    fn parts(&self) -> (&UnitName, &String) {
        (&self.unit, &self.key)
    }
}

type Group<V> = OrdMap<<<V as Kind>::Key as Parts>::Second, Arc<V>>;

/// A map of maps: by the first part of the key, then by the second. There is no empty group.
#[derive(Debug, Clone)]
pub(super) struct Nested<V: Kind<Key: Parts>>(OrdMap<<V::Key as Parts>::First, Group<V>>);

impl<V: Kind<Key: Parts>> Default for Nested<V> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<V: Kind<Key: Parts>> Deref for Nested<V> {
    type Target = OrdMap<<V::Key as Parts>::First, Group<V>>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V: Kind<Key: Parts>> Nested<V> {
    /// Returns the entity under a key.
    pub(super) fn find(&self, key: &V::Key) -> Option<&Arc<V>> {
        let (first, second) = key.parts();
        self.0.get(first)?.get(second)
    }

    /// Puts or deletes an entity, and returns the old one.
    pub(super) fn put(&mut self, key: &V::Key, entity: Option<&Arc<V>>) -> Option<Arc<V>> {
        let (first, second) = key.parts();
        if let Some(entity) = entity {
            return self.0.entry(first.clone()).or_default().insert(second.clone(), Arc::clone(entity));
        }
        let group = self.0.get_mut(first)?;
        let old = group.remove(second);
        if group.is_empty() {
            self.0.remove(first);
        }
        old
    }

    /// Returns the entities of one group, by the second part of their key.
    pub(super) fn of(&self, first: &<V::Key as Parts>::First) -> impl DoubleEndedIterator<Item = &Arc<V>> {
        self.0.get(first).into_iter().flat_map(OrdMap::values)
    }

    /// Returns the number of entities in a group.
    pub(super) fn count(&self, first: &<V::Key as Parts>::First) -> usize {
        self.0.get(first).map_or(0, OrdMap::len)
    }

    /// Returns all entities, by key.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<V>> {
        self.0.values().flat_map(OrdMap::values)
    }

    /// Returns the differences to a later table. Shared parts of the maps are skipped.
    pub(super) fn changes<'a>(&'a self, newer: &'a Self) -> Vec<Change<'a, V>> {
        let mut all = Vec::new();
        for (_, old, new) in changes(&self.0, &newer.0) {
            match (old, new) {
                (Some(old), Some(new)) => {
                    all.extend(changes(old, new).map(|(_, old, new)| Change { old, new }));
                }
                (old, new) => {
                    let gone = old.into_iter().flat_map(OrdMap::values);
                    all.extend(gone.map(|old| Change { old: Some(old), new: None }));
                    let came = new.into_iter().flat_map(OrdMap::values);
                    all.extend(came.map(|new| Change { old: None, new: Some(new) }));
                }
            }
        }
        all
    }
}

/// Returns the differences of two maps: each differing key with its old and new value.
fn changes<'a, K: Ord, V: PartialEq>(
    old: &'a OrdMap<K, V>,
    new: &'a OrdMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    old.diff(new).map(|item| match item {
        DiffItem::Add(key, new) => (key, None, Some(new)),
        DiffItem::Remove(key, old) => (key, Some(old), None),
        DiffItem::Update { old: (_, old), new: (key, new) } => (key, Some(old), Some(new)),
    })
}
