//! One relation as its unit is to see it now, beside what the unit was told of it.

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
use crate::subject::Subject;

/// A relation that the unit is in, as it stands in the record and in the view.
pub(super) struct Sight<'a> {
    pub(super) id: RelationId,
    /// What the unit was told.
    pub(super) told: &'a RelationRecord,
    /// None, or dead: the relation was removed by force while the unit was in its scope.
    view: Option<&'a RelationView>,
    subject: &'a Subject<'a>,
    /// The units that share a container with this one; none in a relation of global scope.
    company: Option<BTreeSet<&'a UnitName>>,
}

impl<'a> Sight<'a> {
    /// All relations of the record in the order in which they are served: peers last, each kind by id (R-27 and
    /// section 0).
    pub(super) fn of_all(subject: &'a Subject<'a>) -> Vec<Self> {
        let mut sights: Vec<Self> = subject
            .record()
            .relations
            .iter()
            .map(|(id, told)| {
                let view = subject.view.relations.get(id);
                let contained = view.is_some_and(|view| view.scope == Scope::Container);
                let company = contained.then(|| company(subject, &told.remote_application));
                Self { id: *id, told, view, subject, company }
            })
            .collect();
        sights.sort_by_key(|sight| (sight.is_peer(), sight.id));
        sights
    }

    /// How an event names the relation.
    pub(super) fn context(&self) -> RelationContext {
        RelationContext {
            endpoint: self.told.endpoint.clone(),
            relation: self.id,
            remote_application: self.told.remote_application.clone(),
        }
    }

    /// Whether it joins the units of one application. The record tells it, so that it is known of a relation
    /// that is gone, too.
    pub(super) fn is_peer(&self) -> bool {
        self.told.remote_application == *self.subject.unit.name.application()
    }

    /// Whether it is to end for this unit: an empty set of members is compared with what the unit was told.
    pub(super) fn ending(&self) -> bool {
        !self.subject.alive() || self.view.is_none_or(|view| view.life != Life::Alive || view.suspended)
    }

    /// Whether it was taken out of the model by force.
    pub(super) fn gone(&self) -> bool {
        is_gone(self.view)
    }

    /// Who departs when `remote` goes out of view.
    pub(super) fn departing(&self, remote: &UnitName) -> UnitName {
        if self.leaves() { self.subject.unit.name.clone() } else { remote.clone() }
    }

    /// Whether a unit is a member that this unit is to see.
    pub(super) fn sees(&self, unit: &UnitName) -> bool {
        let membership = self.view.and_then(|view| view.members.get(unit));
        !self.ending() && membership.is_some_and(|membership| self.is_visible(unit, *membership))
    }

    /// The members that this unit is to see, sorted.
    pub(super) fn members(&self) -> impl Iterator<Item = &'a UnitName> {
        let view = self.view.filter(|_| !self.ending());
        view.into_iter()
            .flat_map(|view| &view.members)
            .filter(|(unit, membership)| self.is_visible(unit, **membership))
            .map(|(unit, _)| unit)
    }

    fn is_visible(&self, unit: &UnitName, membership: Membership) -> bool {
        membership == Membership::Joined
            && *unit != self.subject.unit.name
            && *unit.application() == self.told.remote_application
            && self.company.as_ref().is_none_or(|company| company.contains(unit))
    }

    /// Whether the application bag is not as the unit saw it last. Never written gives no hook, nor does a
    /// relation that is ending.
    pub(super) fn application_differs(&self) -> bool {
        let seen = self.told.applications.get(&self.told.remote_application).copied().unwrap_or(0);
        let version = self.application_version();
        version != 0 && version != seen && !self.ending()
    }

    /// Whether its endpoint asks for batches.
    pub(super) fn batches(&self) -> bool {
        self.subject.batches(&self.told.endpoint)
    }

    /// This unit.
    pub(super) fn unit(&self) -> &UnitName {
        &self.subject.unit.name
    }

    /// Whether it is this unit that departs, when others go out of view.
    pub(super) fn leaves(&self) -> bool {
        leaving(self.subject)
    }

    /// The units whose bags are left of a membership that is over, without those of whom the unit is still to be
    /// told. In a container there is one counterpart, of whose coming and going the unit is always told.
    pub(super) fn gone_members(&self) -> Vec<&'a UnitName> {
        if self.company.is_some() || self.gone() {
            return Vec::new();
        }
        let owners = self.subject.bag_owners(self.id, &self.told.remote_application);
        let over = owners.filter(|unit| {
            !self.told.members.contains_key(*unit) && !self.sees(unit) && **unit != self.subject.unit.name
        });
        over.collect()
    }

    /// Those among them that came and went since the unit's last hook of the relation: it was never told of them. All of
    /// them by name, if they are the first ever to have gone; else their number.
    pub(super) fn came_and_went(&self) -> (Vec<&'a UnitName>, u64) {
        if self.ending() || !self.told.created {
            return (Vec::new(), 0);
        }
        let gone = self.gone_members();
        let count = u64::try_from(gone.len()).unwrap_or(u64::MAX).saturating_sub(self.told.gone);
        (if self.told.gone == 0 { gone } else { Vec::new() }, count)
    }

    /// The version of a member's bag; 0: never written.
    pub(super) fn unit_version(&self, unit: &UnitName) -> u64 {
        self.subject.bag_version(self.id, BagOwner::Unit(unit.clone()))
    }

    /// The version of the application bag that the unit watches: the other application's, in a peer relation its
    /// own.
    pub(super) fn application_version(&self) -> u64 {
        let owner = BagOwner::Application(self.told.remote_application.clone());
        self.subject.bag_version(self.id, owner)
    }
}

/// The units of an application that share this unit's container: its principal, its subordinates, and the other
/// subordinates of its principal.
pub(super) fn company<'a>(subject: &Subject<'a>, application: &ApplicationName) -> BTreeSet<&'a UnitName> {
    let unit = subject.unit;
    let siblings = unit
        .principal
        .as_ref()
        .and_then(|principal| subject.view.units.get(principal))
        .into_iter()
        .flat_map(|principal| &principal.subordinates);
    unit.principal
        .iter()
        .chain(&unit.subordinates)
        .chain(siblings)
        .filter(|other| other.application() == application && **other != unit.name)
        .collect()
}
