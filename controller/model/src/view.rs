//! The view of a runner: its own units and the data that they may read (`docs/design/views.md`, `docs/hook-model.md`
//! 2.7).

use std::{cell::OnceCell, collections::BTreeSet, sync::Arc};

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
mod host;
mod kinds;
mod peers;
mod seen;

pub use follow::follow;
use host::Host;
pub use peers::peers;
pub(crate) use seen::HasView;

/// Returns a caller's view of its model. It is empty for callers other than runners, and for a model that is removed.
pub fn view(root: &Root, caller: &Caller) -> View {
    let empty = View { revision: root.revision(), ..View::default() };
    let Caller::Runner { agent, model } = caller else { return empty };
    let Some(state) = root.model_or_remains(model) else { return empty };
    let own = RunnerEntities::of(root, state, agent);
    let mut view = View { model: Some(state.model_view()), ..empty };
    for unit in own.units() {
        own.add_kinds_of(&unit.name, &mut view);
    }
    own.add_kinds_beside(&mut view);
    own.add_charms(&mut view);
    own.add_outlines(&mut view);
    for relation in own.relations() {
        own.add_relation(relation, &mut view);
    }
    own.add_secrets(&mut view);
    view
}

/// The units and applications of one runner. Queries about one unit or application cost the same in a large model.
pub(crate) struct RunnerEntities<'a> {
    root: &'a Root,
    pub(crate) state: &'a ModelState,
    pub(crate) agent: &'a AgentName,
    /// Computed for the first machine that is shown.
    host: OnceCell<Host<'a>>,
}

impl<'a> RunnerEntities<'a> {
    fn of(root: &'a Root, state: &'a ModelState, agent: &'a AgentName) -> Self {
        Self { root, state, agent, host: OnceCell::new() }
    }

    pub(crate) fn host(&self) -> &Host<'a> {
        self.host.get_or_init(|| Host::of(self.root, self.agent))
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

    fn add_charms(&self, view: &mut View) {
        let wanted = self.applications().filter_map(|name| self.state.application(name));
        let mut charms: BTreeSet<Digest> = wanted.map(|application| application.charm.digest).collect();
        charms.extend(self.state.charms_run_on(self.agent));
        let found = charms.iter().filter_map(|digest| self.state.charm(digest));
        for charm in found.filter_map(|charm| charm.view(self.root)) {
            view.charms.insert(charm.digest, charm);
        }
    }

    fn add_outlines(&self, view: &mut View) {
        for name in self.related_applications() {
            for unit in self.state.units_of(&name) {
                view.outlines.insert(unit.name.clone(), unit.outline(self.state));
            }
        }
    }

    /// Returns the runner's applications, and those at the other ends of their relations.
    fn related_applications(&self) -> BTreeSet<ApplicationName> {
        let ends = self.relations().flat_map(|relation| &relation.endpoints);
        ends.map(|end| end.application.clone()).chain(self.applications().cloned()).collect()
    }

    pub(crate) fn applications(&self) -> impl Iterator<Item = &'a ApplicationName> {
        self.state.applications_on(self.agent)
    }

    /// Returns the relations of the runner's applications.
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

    /// Returns true if the runner sees a relation. A dead relation is visible only to units that have yet to run its
    /// last hooks.
    fn has_part_in(&self, relation: &Relation) -> bool {
        relation.endpoints.iter().any(|end| self.has_units_of(&end.application))
            && (relation.life != Life::Dead || self.state.is_remembered_on(self.agent, &relation.id))
    }

    fn add_relation(&self, relation: &Relation, view: &mut View) {
        let sight = RelationVisibility::of(self, relation);
        let members = self.state.members(&relation.id).filter(|(unit, _)| sight.sees_unit(unit));
        let members = members.map(|(unit, membership)| (unit.clone(), *membership)).collect();
        view.relations.insert(relation.id, relation.view(members));
        for bag in self.state.bags(&relation.id).filter(|bag| sight.sees_bag(bag)) {
            view.bags.insert(bag.key.clone(), bag.view());
        }
    }
}

/// The part of one relation that a runner's units see.
struct RelationVisibility<'s, 'a> {
    own: &'s RunnerEntities<'a>,
    relation: &'s Relation,
    /// The applications whose units and bags the runner's units see.
    remote: BTreeSet<&'s ApplicationName>,
}

impl<'s, 'a> RelationVisibility<'s, 'a> {
    fn of(own: &'s RunnerEntities<'a>, relation: &'s Relation) -> Self {
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
            // the counterparts in a container are on one machine, so all are the runner's own units. A removed
            // one is visible only to a unit that was told of it.
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
            // the bag of a removed unit stays readable for the units of its container.
            BagOwner::Unit(unit) => {
                self.sees_unit(unit)
                    || bag.container.as_ref().is_some_and(|principal| self.own.has_unit(principal))
            }
            BagOwner::Application(name) => self.remote.contains(name) || self.leads(name),
        }
    }

    /// Returns true if a unit of the runner leads the application. Except in peer relations, only the leader reads
    /// its own application's bag.
    fn leads(&self, name: &ApplicationName) -> bool {
        let application = self.own.state.application(name);
        application
            .and_then(|application| application.leader.as_ref())
            .is_some_and(|leader| self.own.has_unit(&leader.unit))
    }
}
