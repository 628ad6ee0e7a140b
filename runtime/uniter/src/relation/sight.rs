//! The visible state of one relation, with the unit's knowledge of it.

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, RelationId, UnitName,
    event::RelationContext,
    record::RelationRecord,
    relation::{BagOwner, Scope},
    status::Life,
    view::{Membership, RelationView},
};

use super::{is_gone, leaving};
use crate::resolve_input::ResolveInput;

/// A relation that the unit is in, from the record and the view.
pub(super) struct Sight<'a> {
    pub(super) id: RelationId,
    /// The unit's knowledge.
    pub(super) told: &'a RelationRecord,
    /// The view of the relation. None or a dead one means that it was removed by force while the unit was in its scope.
    view: Option<&'a RelationView>,
    input: &'a ResolveInput<'a>,
    /// The units in the same container; none for a relation of global scope.
    company: Option<BTreeSet<&'a UnitName>>,
}

impl<'a> Sight<'a> {
    /// Returns all relations of the record in the order of their hooks: peers last, each kind by id (R-27 and section
    /// 0).
    pub(super) fn of_all(input: &'a ResolveInput<'a>) -> Vec<Self> {
        let mut sights: Vec<Self> = input
            .record()
            .relations
            .iter()
            .map(|(id, told)| {
                let view = input.view.relations.get(id);
                let contained = view.is_some_and(|view| view.scope == Scope::Container);
                let company = contained.then(|| company(input, &told.remote_application));
                Self { id: *id, told, view, input, company }
            })
            .collect();
        sights.sort_by_key(|sight| (sight.is_peer(), sight.id));
        sights
    }

    /// Returns the relation's data for events.
    pub(super) fn context(&self) -> RelationContext {
        RelationContext {
            endpoint: self.told.endpoint.clone(),
            relation: self.id,
            remote_application: self.told.remote_application.clone(),
        }
    }

    /// Returns true if the relation is between units of one application. The record shows this even for a relation that
    /// is gone.
    pub(super) fn is_peer(&self) -> bool {
        self.told.remote_application == *self.input.unit.name.application()
    }

    /// Returns true if the relation ends for this unit, which then sees no members.
    pub(super) fn ending(&self) -> bool {
        !self.input.alive() || self.view.is_none_or(|view| view.life != Life::Alive || view.suspended)
    }

    /// Returns true if the relation was removed by force.
    pub(super) fn gone(&self) -> bool {
        is_gone(self.view)
    }

    /// Returns the departing unit when `remote` disappears.
    pub(super) fn departing(&self, remote: &UnitName) -> UnitName {
        if self.leaves() { self.input.unit.name.clone() } else { remote.clone() }
    }

    /// Returns true if this unit sees a unit as a member.
    pub(super) fn sees(&self, unit: &UnitName) -> bool {
        let membership = self.view.and_then(|view| view.members.get(unit));
        !self.ending() && membership.is_some_and(|membership| self.is_visible(unit, *membership))
    }

    /// Returns the visible members, sorted.
    pub(super) fn members(&self) -> impl Iterator<Item = &'a UnitName> {
        let view = self.view.filter(|_| !self.ending());
        view.into_iter()
            .flat_map(|view| &view.members)
            .filter(|(unit, membership)| self.is_visible(unit, **membership))
            .map(|(unit, _)| unit)
    }

    fn is_visible(&self, unit: &UnitName, membership: Membership) -> bool {
        membership == Membership::Joined
            && *unit != self.input.unit.name
            && *unit.application() == self.told.remote_application
            && self.company.as_ref().is_none_or(|company| company.contains(unit))
    }

    /// Returns true if the application bag differs from the version that the unit saw last. A bag that was never
    /// written causes no hook, and neither does a relation that is ending.
    pub(super) fn application_differs(&self) -> bool {
        let seen = self.told.applications.get(&self.told.remote_application).copied().unwrap_or(0);
        let version = self.application_version();
        version != 0 && version != seen && !self.ending()
    }

    /// Returns true if the charm wants batches for the endpoint.
    pub(super) fn batches(&self) -> bool {
        self.input.batches(&self.told.endpoint)
    }

    /// Returns this unit.
    pub(super) fn unit(&self) -> &UnitName {
        &self.input.unit.name
    }

    /// Returns true if this unit departs when other units disappear.
    pub(super) fn leaves(&self) -> bool {
        leaving(self.input)
    }

    /// Returns the former members whose bags still exist, without those whose departure the unit has yet to be
    /// told. Returns none for container scope: its one counterpart always has its own hooks.
    pub(super) fn gone_members(&self) -> Vec<&'a UnitName> {
        if self.company.is_some() || self.gone() {
            return Vec::new();
        }
        let owners = self.input.bag_owners(self.id, &self.told.remote_application);
        let over = owners.filter(|unit| {
            !self.told.members.contains_key(*unit) && !self.sees(unit) && **unit != self.input.unit.name
        });
        over.collect()
    }

    /// Returns the former members that the unit was never told of, because they came and went since the relation's last
    /// hook. The result is their names if they are the first former members, and their number.
    pub(super) fn came_and_went(&self) -> (Vec<&'a UnitName>, u64) {
        if self.ending() || !self.told.created {
            return (Vec::new(), 0);
        }
        let gone = self.gone_members();
        let count = u64::try_from(gone.len()).unwrap_or(u64::MAX).saturating_sub(self.told.gone);
        (if self.told.gone == 0 { gone } else { Vec::new() }, count)
    }

    /// Returns the version of a member's bag; 0 if it was never written.
    pub(super) fn unit_version(&self, unit: &UnitName) -> u64 {
        self.input.bag_version(self.id, BagOwner::Unit(unit.clone()))
    }

    /// Returns the version of the visible application bag: the other application's, or in a peer relation the own one
    ///
    pub(super) fn application_version(&self) -> u64 {
        let owner = BagOwner::Application(self.told.remote_application.clone());
        self.input.bag_version(self.id, owner)
    }
}

/// Returns the units of an application in this unit's container: its principal, its subordinates, and its principal's
/// other subordinates.
pub(super) fn company<'a>(input: &ResolveInput<'a>, application: &ApplicationName) -> BTreeSet<&'a UnitName> {
    let unit = input.unit;
    let siblings = unit
        .principal
        .as_ref()
        .and_then(|principal| input.view.units.get(principal))
        .into_iter()
        .flat_map(|principal| &principal.subordinates);
    unit.principal
        .iter()
        .chain(&unit.subordinates)
        .chain(siblings)
        .filter(|other| other.application() == application && **other != unit.name)
        .collect()
}
