//! The pairs of applications that are related.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ApplicationName, RelationId, status::Life, view::RelationView};

/// The pairs of applications of one model whose units connect to each other because of a relation. A relation counts
/// until it is dead, because its last hooks may still use it, unless it is suspended. Relations across models do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelatedApplications {
    /// Each pair in both orders, with its relations.
    pairs: BTreeSet<(ApplicationName, ApplicationName, RelationId)>,
    relations: BTreeMap<RelationId, (ApplicationName, ApplicationName)>,
}

impl RelatedApplications {
    /// Adds or replaces a relation. Returns true if the relation counts otherwise than before.
    pub fn put(&mut self, relation: &RelationView) -> bool {
        let counts = relation.life != Life::Dead && !relation.suspended && relation.remote.is_none();
        let ([one, other], true) = (relation.endpoints.as_slice(), counts) else {
            return self.remove(&relation.id);
        };
        let pair = (one.application.clone(), other.application.clone());
        if self.relations.get(&relation.id) == Some(&pair) {
            return false;
        }
        self.remove(&relation.id);
        let (one, other) = pair.clone();
        self.pairs.insert((one.clone(), other.clone(), relation.id));
        self.pairs.insert((other, one, relation.id));
        self.relations.insert(relation.id, pair);
        true
    }

    /// Removes a relation. Returns true if it counted.
    pub fn remove(&mut self, id: &RelationId) -> bool {
        let Some((one, other)) = self.relations.remove(id) else { return false };
        self.pairs.remove(&(one.clone(), other.clone(), *id));
        self.pairs.remove(&(other, one, *id));
        true
    }

    /// Returns true if a relation joins two applications.
    pub fn are_related(&self, one: &ApplicationName, other: &ApplicationName) -> bool {
        let first = (one.clone(), other.clone(), RelationId(0));
        self.pairs.range(first..).next().is_some_and(|(a, b, _)| (a, b) == (one, other))
    }
    /// Returns the first application, in the order of names from this one on, that a relation joins to another one.
    pub fn first_related(&self, one: &ApplicationName, from: &ApplicationName) -> Option<&ApplicationName> {
        let first = (one.clone(), from.clone(), RelationId(0));
        self.pairs.range(first..).next().filter(|(a, ..)| a == one).map(|(_, b, _)| b)
    }
}
