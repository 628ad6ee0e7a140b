//! The visible state of one relation, with the unit's knowledge of it.

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, RelationId, UnitName,
    event::RelationContext,
    record::RelationRecord,
    relation::{BagOwner, Scope},
    status::Life,
    unit_map::merged_runs,
    view::{Membership, RelationView},
};

use super::{is_gone, leaving};
use crate::resolve_input::ResolveInput;

/// A relation that the unit is in, from the record and the view.
pub(super) struct RelationInput<'a> {
    pub(super) id: RelationId,
    /// The unit's knowledge.
    pub(super) told: &'a RelationRecord,
    /// The view of the relation. None or a dead one means that it was removed by force while the unit was in its scope.
    view: Option<&'a RelationView>,
    input: &'a ResolveInput<'a>,
    /// The units in the same container; none for a relation of global scope.
    company: Option<BTreeSet<&'a UnitName>>,
}

impl<'a> RelationInput<'a> {
    /// Returns all relations of the record in the order of their hooks: peers last, each kind by id (R-27 and section
    /// 0).
    pub(super) fn of_all(input: &'a ResolveInput<'a>) -> Vec<Self> {
        let mut relations: Vec<Self> = input
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
        relations.sort_by_key(|relation| (relation.is_peer(), relation.id));
        relations
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
        !self.ending()
            && membership == Some(&Membership::Joined)
            && *unit != self.input.unit.name
            && *unit.application() == self.told.remote_application
            && self.company.as_ref().is_none_or(|company| company.contains(unit))
    }

    /// Returns the units at the other end, by number, from the record and the view. Container scope has few; otherwise
    /// the cost is proportional to the runs of the record and the view.
    pub(super) fn others(&self) -> Box<dyn Iterator<Item = RemoteUnitRun> + '_> {
        match &self.company {
            Some(company) => Box::new(self.others_in(company)),
            None => Box::new(self.others_in_runs()),
        }
    }

    fn others_in(&self, company: &BTreeSet<&UnitName>) -> impl Iterator<Item = RemoteUnitRun> {
        let told = self.told.members.keys();
        let units: BTreeSet<UnitName> = told.chain(company.iter().map(|unit| (*unit).clone())).collect();
        units.into_iter().map(|unit| RemoteUnitRun {
            first: unit.number(),
            last: unit.number(),
            told: self.told.members.get(&unit).copied(),
            seen: self.sees(&unit),
            bag: self.bag(&unit),
        })
    }

    fn others_in_runs(&self) -> impl Iterator<Item = RemoteUnitRun> {
        let remote = &self.told.remote_application;
        let view = self.view.filter(|_| !self.ending());
        let members = view.map_or(&[][..], |view| view.members.runs(remote));
        let bags = self.input.view.bags.versions(self.id).map_or(&[][..], |bags| bags.runs(remote));
        let all = merged_runs(self.told.members.runs(remote), members, bags).map(|run| RemoteUnitRun {
            first: run.first,
            last: run.last,
            told: run.one.copied(),
            seen: run.two == Some(&Membership::Joined),
            bag: run.three.copied(),
        });
        // Among peers the unit itself is a member, too.
        let own = self.is_peer().then(|| self.input.unit.name.number());
        all.flat_map(move |others| others.without(own)).flatten()
    }

    /// Returns the unit at the other end with a number.
    pub(super) fn other(&self, number: u32) -> UnitName {
        UnitName::new(self.told.remote_application.clone(), number)
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

    /// Returns the number of former members whose bags still exist, without those whose departure the unit has yet
    /// to be told. Returns 0 for container scope: its one counterpart always has its own hooks.
    pub(super) fn gone_members(&self) -> u64 {
        self.former().map(|former| former.count()).sum()
    }

    fn former(&self) -> impl Iterator<Item = RemoteUnitRun> {
        let counts = self.company.is_none() && !self.gone();
        let others = counts.then(|| self.others()).into_iter().flatten();
        others.filter(|others| others.bag.is_some() && others.told.is_none() && !others.seen)
    }

    /// Returns the former members that the unit was never told of, because they came and went since the relation's last
    /// hook. The result is at most `most_named` of their names if they are the first former members, and their number.
    pub(super) fn came_and_went(&self, most_named: usize) -> (Vec<UnitName>, u64) {
        if self.ending() || !self.told.created {
            return (Vec::new(), 0);
        }
        let count = self.gone_members().saturating_sub(self.told.gone);
        let names = self.former().filter(|_| self.told.gone == 0).flat_map(|former| former.numbers());
        (names.take(most_named).map(|number| self.other(number)).collect(), count)
    }

    /// Returns the version of a member's bag; 0 if it was never written.
    fn bag(&self, unit: &UnitName) -> Option<u64> {
        self.input.view.bags.versions(self.id)?.get(unit).copied()
    }

    /// Returns the version of the visible application bag: the other application's, or in a peer relation the own one
    ///
    pub(super) fn application_version(&self) -> u64 {
        let owner = BagOwner::Application(self.told.remote_application.clone());
        self.input.bag_version(self.id, owner)
    }
}

/// Consecutive units at the other end of a relation with equal states.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemoteUnitRun {
    first: u32,
    last: u32,
    /// The version of their bags that the unit was told; none if it was not told that they joined.
    pub(super) told: Option<u64>,
    /// True if they are visible members.
    pub(super) seen: bool,
    /// The version of their bags; none without bags.
    bag: Option<u64>,
}

impl RemoteUnitRun {
    /// Returns their numbers.
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        self.first..=self.last
    }

    fn count(self) -> u64 {
        u64::from(self.last.abs_diff(self.first)).saturating_add(1)
    }

    /// Returns true if the unit was told of them and does not see them any more.
    pub(super) fn departed(&self) -> bool {
        self.told.is_some() && !self.seen
    }

    /// Returns true if the unit sees them and was not told of them.
    pub(super) fn joined(&self) -> bool {
        self.told.is_none() && self.seen
    }

    /// Returns true if their bags differ from the version that the unit was told last.
    pub(super) fn changed(&self) -> bool {
        self.told.is_some_and(|told| told != self.bag.unwrap_or(0))
    }

    /// Returns true if one of them has this number.
    pub(super) fn has(&self, number: u32) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// Returns the units before and the units behind a number.
    fn without(self, number: Option<u32>) -> [Option<Self>; 2] {
        let Some(number) = number.filter(|number| self.has(*number)) else { return [Some(self), None] };
        let before = number.checked_sub(1).filter(|last| self.first <= *last);
        let behind = number.checked_add(1).filter(|first| *first <= self.last);
        [before.map(|last| Self { last, ..self }), behind.map(|first| Self { first, ..self })]
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
