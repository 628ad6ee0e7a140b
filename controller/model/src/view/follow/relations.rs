//! The update of relations, members and bags in a view.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    RelationId, UnitName,
    record::RelationRecord,
    relation::{BagKey, BagOwner, Scope},
};

use super::Follow;
use crate::{entity::Unit, view::RelationVisibility};

/// The members and bags whose visibility may have changed.
#[derive(Default)]
struct VisibilityChanges {
    members: BTreeMap<RelationId, BTreeSet<UnitName>>,
    bags: BTreeSet<BagKey>,
}

impl VisibilityChanges {
    fn member(&mut self, relation: RelationId, unit: &UnitName) {
        self.members.entry(relation).or_default().insert(unit.clone());
    }

    fn unit(&mut self, relation: RelationId, unit: &UnitName) {
        self.member(relation, unit);
        self.bags.insert(BagKey { relation, owner: BagOwner::Unit(unit.clone()) });
    }
}

impl Follow<'_> {
    /// Updates the relations in the view. A relation that is not in the view has no unit of the runner.
    pub(super) fn relations(&mut self) {
        let state = self.own.state;
        let bags = self.differences.bags.iter().cloned().collect();
        let mut visibility = VisibilityChanges { bags, ..VisibilityChanges::default() };
        self.differences.members.iter().for_each(|(id, unit)| visibility.member(*id, unit));
        for (old, new) in &self.differences.applications {
            // The leader sees the application's own bags.
            if old.leader != new.leader {
                let owner = BagOwner::Application(new.name.clone());
                let relations = state.relations_of(&new.name).map(|relation| relation.id);
                visibility.bags.extend(relations.map(|relation| BagKey { relation, owner: owner.clone() }));
            }
        }
        for (before, after) in &self.differences.units {
            if self.next.units.contains_key(&after.name) {
                self.note_record_changes(before, after, &mut visibility);
            }
        }
        for unit in &self.differences.gone_units {
            self.gone(unit, &mut visibility);
        }
        let changed = self.differences.relations.iter().copied();
        for id in changed.chain(visibility.members.keys().copied()).collect::<BTreeSet<_>>() {
            self.show_relation(id, visibility.members.get(&id));
        }
        for key in &visibility.bags {
            self.show_bag(key);
        }
    }

    /// Adds the members of a container scope whose visibility depends on a changed record of a unit. In other
    /// relations, the record does not matter.
    fn note_record_changes(&self, before: &Unit, after: &Unit, visibility: &mut VisibilityChanges) {
        let (was, is) = (&before.record.relations, &after.record.relations);
        if was == is {
            return;
        }
        let in_container =
            |id: &&RelationId| self.own.state.relation(id).is_some_and(|it| it.scope == Scope::Container);
        let told = |record: Option<&RelationRecord>| -> BTreeSet<UnitName> {
            record.into_iter().flat_map(|record| record.members.keys()).collect()
        };
        for id in was.keys().chain(is.keys()).filter(in_container) {
            let (was, is) = (told(was.get(id)), told(is.get(id)));
            was.symmetric_difference(&is).for_each(|unit| visibility.unit(*id, unit));
        }
    }

    /// Adds a removed unit and the members that it was told of: fewer units see them now.
    fn gone(&self, unit: &Unit, visibility: &mut VisibilityChanges) {
        for relation in self.own.state.relations_of(unit.name.application()) {
            if !self.next.relations.contains_key(&relation.id) {
                continue;
            }
            visibility.unit(relation.id, &unit.name);
            if relation.scope != Scope::Container {
                continue;
            }
            let told = unit.record.relations.get(&relation.id).into_iter();
            told.flat_map(|record| record.members.keys())
                .for_each(|other| visibility.unit(relation.id, &other));
        }
        visibility.bags.extend(self.own.state.bags_contained_by(&unit.name).cloned());
    }

    /// Updates a relation. Members outside of `visibility` stay as they are.
    fn show_relation(&mut self, id: RelationId, visibility: Option<&BTreeSet<UnitName>>) {
        let Some(relation) = self.own.state.relation(&id) else { return };
        let Some(seen) = self.next.relations.get(&id) else { return };
        let (mut members, sight) = (seen.members.clone(), RelationVisibility::of(&self.own, relation));
        for unit in visibility.into_iter().flatten() {
            match self.own.state.membership(&id, unit).filter(|_| sight.sees_unit(unit)) {
                Some(membership) => members.insert(unit.clone(), membership),
                None => members.remove(unit),
            };
        }
        self.next.relations.insert(id, relation.view(members));
    }

    fn show_bag(&mut self, key: &BagKey) {
        let state = self.own.state;
        let Some(relation) = state.relation(&key.relation) else { return };
        if !self.next.relations.contains_key(&key.relation) {
            return;
        }
        let sight = RelationVisibility::of(&self.own, relation);
        match state.bag(key).filter(|bag| sight.sees_bag(bag)) {
            Some(bag) => drop(self.next.bags.insert(key.clone(), bag.view())),
            None => drop(self.next.bags.remove(key)),
        }
    }
}
