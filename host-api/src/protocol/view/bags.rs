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
    /// Puts a bag in its place; answers the one that stood there.
    pub fn insert(&mut self, key: BagKey, bag: BagView) -> Option<BagView> {
        if let BagOwner::Unit(unit) = &key.owner {
            self.versions.entry(key.relation).or_default().insert(unit.clone(), bag.version);
        }
        self.all.insert(key, bag)
    }

    /// Takes a bag out.
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

    /// The versions of all bags of units in a relation; none: it has none.
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
