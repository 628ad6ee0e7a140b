//! What a runner may see: exactly its own units and what these may read (`docs/design/views.md`,
//! `docs/hook-model.md` 2.7).

use std::{collections::BTreeSet, sync::Arc};

use periapt_host_api::{
    AgentName, ApplicationName, Digest, RelationId, UnitName,
    command::Caller,
    relation::{BagOwner, Scope},
    status::Life,
    view::View,
};

use crate::{
    entity::{Bag, Relation, Unit},
    root::{ModelState, Root},
};

mod follow;
mod kinds;
mod project;
mod seen;

pub use follow::follow;
pub(crate) use seen::Seen;

/// One caller's view of its model. Whoever is no runner, or whose model is gone, sees nothing.
pub fn view(root: &Root, caller: &Caller) -> View {
    let empty = View { revision: root.revision(), ..View::default() };
    let Caller::Runner { agent, model } = caller else { return empty };
    let Some(state) = root.model_or_remains(model) else { return empty };
    let own = Own::of(state, agent);
    let mut view = View { model: Some(project::model(state)), ..empty };
    own.add_units(root, &mut view);
    own.add_kinds_beside(&mut view);
    own.add_applications(root, &mut view);
    for relation in own.relations() {
        own.add_relation(relation, &mut view);
    }
    own.add_secrets(&mut view);
    view
}

/// What belongs to one runner. What it answers about one unit or application costs the same however many there are.
pub(crate) struct Own<'a> {
    pub(crate) state: &'a ModelState,
    pub(crate) agent: &'a AgentName,
}

impl<'a> Own<'a> {
    fn of(state: &'a ModelState, agent: &'a AgentName) -> Self {
        Self { state, agent }
    }

    pub(crate) fn units(&self) -> impl Iterator<Item = &'a Arc<Unit>> {
        let state = self.state;
        state.machines_of(self.agent).flat_map(move |machine| state.units_on(&machine.id))
    }

    pub(crate) fn has_unit(&self, name: &UnitName) -> bool {
        self.state.unit(name).is_some_and(|unit| self.state.agent_of(unit) == Some(self.agent))
    }

    pub(crate) fn has_units_of(&self, application: &ApplicationName) -> bool {
        self.state.has_units_on(self.agent, application)
    }

    fn add_units(&self, root: &Root, view: &mut View) {
        for unit in self.units() {
            self.add_unit(unit, view);
        }
        let host = project::Host::of(root, self.agent);
        for machine in self.state.machines_of(self.agent) {
            view.machines.insert(machine.id, host.machine(self.state, machine));
        }
    }

    fn add_unit(&self, unit: &Unit, view: &mut View) {
        let name = &unit.name;
        if let Some(found) = project::unit(self.state, unit) {
            view.units.insert(name.clone(), found);
        }
        self.add_kinds_of(name, view);
    }

    fn add_applications(&self, root: &Root, view: &mut View) {
        let mut charms: BTreeSet<Digest> = self.state.charms_run_on(self.agent).copied().collect();
        for application in self.applications().filter_map(|name| self.state.application(name)) {
            charms.insert(application.charm.digest);
            view.applications.insert(application.name.clone(), project::application(self.state, application));
        }
        for digest in charms {
            if let Some(charm) = project::charm(root, self.state, &digest) {
                view.charms.insert(digest, charm);
            }
        }
        for name in self.related_applications() {
            for unit in self.state.units_of(&name) {
                view.outlines.insert(unit.name.clone(), project::outline(unit));
            }
        }
    }

    /// Own applications, and those at the other ends of their relations.
    fn related_applications(&self) -> BTreeSet<ApplicationName> {
        let ends = self.relations().flat_map(|relation| &relation.endpoints);
        ends.map(|end| end.application.clone()).chain(self.applications().cloned()).collect()
    }

    pub(crate) fn applications(&self) -> impl Iterator<Item = &'a ApplicationName> {
        self.state.applications_on(self.agent)
    }

    /// The relations of own applications.
    fn relations(&self) -> impl Iterator<Item = &'a Arc<Relation>> {
        let ids: BTreeSet<RelationId> = self
            .applications()
            .flat_map(|name| self.state.relations_of(name))
            .filter(|relation| self.has_part_in(relation))
            .map(|relation| relation.id)
            .collect();
        let state = self.state;
        ids.into_iter().filter_map(move |id| state.relation(&id))
    }

    /// A dead relation is there only for units that have hooks of it to run.
    fn has_part_in(&self, relation: &Relation) -> bool {
        relation.endpoints.iter().any(|end| self.has_units_of(&end.application))
            && (relation.life != Life::Dead || self.state.is_remembered_on(self.agent, &relation.id))
    }

    fn add_relation(&self, relation: &Relation, view: &mut View) {
        let sight = Sight::of(self, relation);
        let members = self.state.members(&relation.id).filter(|(unit, _)| sight.sees_unit(unit));
        let members = members.map(|(unit, membership)| (unit.clone(), *membership)).collect();
        view.relations.insert(relation.id, project::relation(relation, members));
        for bag in self.state.bags(&relation.id).filter(|bag| sight.sees_bag(bag)) {
            view.bags.insert(bag.key.clone(), project::bag(bag));
        }
    }
}

/// What a runner's units see in one relation.
struct Sight<'a> {
    own: &'a Own<'a>,
    relation: &'a Relation,
    /// Applications whose units and bags own units look at.
    remote: BTreeSet<&'a ApplicationName>,
}

impl<'a> Sight<'a> {
    fn of(own: &'a Own<'a>, relation: &'a Relation) -> Self {
        let remote = relation
            .endpoints
            .iter()
            .filter(|end| own.has_units_of(&end.application))
            .filter_map(|end| relation.other_end(&end.application))
            .map(|end| &end.application)
            .collect();
        Self { own, relation, remote }
    }

    fn sees_unit(&self, unit: &UnitName) -> bool {
        if self.own.has_unit(unit) {
            return true;
        }
        match self.relation.scope {
            Scope::Global => self.remote.contains(unit.application()),
            // counterparts live on one machine, so they are own units; one that is gone is known only to
            // the unit that was told of it.
            Scope::Container => self.own.state.unit(unit).is_none() && self.was_told_of(unit),
        }
    }

    fn was_told_of(&self, unit: &UnitName) -> bool {
        self.own.units().any(|own| {
            let told = own.record.relations.get(&self.relation.id);
            told.is_some_and(|record| record.members.contains_key(unit))
        })
    }

    fn sees_bag(&self, bag: &Bag) -> bool {
        match &bag.key.owner {
            // the bag of a unit that is gone stays readable for those that shared its container.
            BagOwner::Unit(unit) => {
                self.sees_unit(unit)
                    || bag.container.as_ref().is_some_and(|principal| self.own.has_unit(principal))
            }
            BagOwner::Application(name) => self.remote.contains(name) || self.leads(name),
        }
    }

    /// Of its own application's bag only the leader knows, but for peers.
    fn leads(&self, name: &ApplicationName) -> bool {
        let application = self.own.state.application(name);
        application
            .and_then(|application| application.leader.as_ref())
            .is_some_and(|leader| self.own.has_unit(&leader.unit))
    }
}
