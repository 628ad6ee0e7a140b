//! The bags of a view, with the versions of units' bags beside them.

use std::ops::Deref;

use imbl::OrdMap;

use super::BagView;
use crate::{
    RelationId, UnitMap,
    relation::{BagKey, BagOwner},
};

/// The bags of a view, by key. Cloning is cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bags {
    all: OrdMap<BagKey, BagView>,
    // Derived: for each relation, the versions of its units' bags.
    versions: OrdMap<RelationId, UnitMap<u64>>,
}

impl Bags {
    /// Inserts a bag, and returns the bag that it replaces.
    pub fn insert(&mut self, key: BagKey, bag: BagView) -> Option<BagView> {
        if let BagOwner::Unit(unit) = &key.owner {
            self.versions.entry(key.relation).or_default().insert(unit.clone(), bag.version);
        }
        self.all.insert(key, bag)
    }

    /// Removes a bag, and returns it.
    pub fn remove(&mut self, key: &BagKey) -> Option<BagView> {
        if let BagOwner::Unit(unit) = &key.owner
            && let Some(versions) = self.versions.get_mut(&key.relation)
        {
            versions.remove(unit);
            if versions.is_empty() {
                self.versions.remove(&key.relation);
            }
        }
        self.all.remove(key)
    }

    /// Returns the versions of all bags of units in a relation, or none without such bags.
    pub fn versions(&self, relation: RelationId) -> Option<&UnitMap<u64>> {
        self.versions.get(&relation)
    }
}

/// For reading alone.
impl Deref for Bags {
    type Target = OrdMap<BagKey, BagView>;
    fn deref(&self) -> &Self::Target {
        &self.all
    }
}
