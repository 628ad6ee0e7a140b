//! The computation of the next view from the last one. Its cost depends on the change, not on the size of the view.

mod relations;
mod units;

use std::sync::Arc;

use periapt_host_api::{
    AgentName, Digest, MachineId,
    command::Caller,
    settings::FirewallMode,
    status::Life,
    view::{View, ViewEntity, ViewKey},
};

use super::{RunnerEntities, view};
use crate::{
    entity::{Application, Unit},
    root::{ModelState, Root, StateDifferences},
    secret::view::secrets_around,
};

/// Returns the view at `root`, given the same caller's view at `before`. Equal to [`view`] at `root`, and shares all
/// unchanged parts with the given view.
pub fn follow(before: &Root, seen: &View, root: &Root, caller: &Caller) -> View {
    let Caller::Runner { agent, model } = caller else { return view(root, caller) };
    let (Some(old), Some(new)) = (before.model_or_remains(model), root.model_or_remains(model)) else {
        return view(root, caller);
    };
    let next = View { revision: root.revision(), ..seen.clone() };
    if before.looks_the_same(root, caller, model) {
        return next;
    }
    let differences = old.differences(new);
    if before.agent(agent) != root.agent(agent)
        || before.reads_charms_otherwise(root, new)
        || old.model().spaces != new.model().spaces
        || old.config().egress_subnets != new.config().egress_subnets
        || firewalls_differ(old, new, &differences)
        || differences.structure
        || differences.applications.iter().any(|(old, new)| old.charm != new.charm)
        || differences.machines.iter().any(|id| changes_hands(old, new, *id))
    {
        return view(root, caller);
    }
    let units = OwnUnits::of(old, new, agent, &differences);
    let own = RunnerEntities::of(root, new, agent);
    let mut follow = Follow { old, own, differences, units, next };
    if follow.sees_others() {
        return view(root, caller);
    }
    follow.next.model = Some(new.model_view());
    follow.own.follow_kinds(&follow.differences, &mut follow.next);
    follow.units();
    follow.machines();
    follow.relations();
    follow.consumers();
    follow.secrets();
    follow.next
}

/// Returns true if a machine moved to another agent, with all its units.
fn changes_hands(old: &ModelState, new: &ModelState, id: MachineId) -> bool {
    let (before, after) = (old.machine(&id), new.machine(&id));
    before.zip(after).is_some_and(|(before, after)| before.agent != after.agent)
}

/// Returns true if firewall rules changed on more machines than those of the changed units and applications.
fn firewalls_differ(old: &ModelState, new: &ModelState, differences: &StateDifferences<'_>) -> bool {
    let (before, after) = (old.config().firewall_mode, new.config().firewall_mode);
    let came_or_went =
        || differences.new_units.iter().chain(&differences.gone_units).any(|unit| !unit.ports.is_empty());
    let opened = || {
        let counts = |(before, after): &(&Arc<Unit>, &Arc<Unit>)| {
            before.ports != after.ports || (before.machine != after.machine && !after.ports.is_empty())
        };
        came_or_went() || differences.units.iter().any(counts)
    };
    let exposed = || differences.applications.iter().any(is_exposed_otherwise);
    before != after || (after == FirewallMode::Global && (opened() || exposed()))
}

fn is_exposed_otherwise((old, new): &(&Arc<Application>, &Arc<Application>)) -> bool {
    (old.exposed, &old.exposures) != (new.exposed, &new.exposures)
}

/// The units that become the runner's own, or are no longer.
struct OwnUnits<'a> {
    came: Vec<&'a Arc<Unit>>,
    went: Vec<&'a Arc<Unit>>,
    /// True if a unit moved to another agent or machine.
    moved: bool,
}

impl<'a> OwnUnits<'a> {
    fn of(old: &ModelState, new: &ModelState, agent: &AgentName, differences: &StateDifferences<'a>) -> Self {
        let was_own = |unit: &Unit| old.agent_of(unit) == Some(agent);
        let is_own = |unit: &Unit| new.agent_of(unit) == Some(agent);
        let mut units = Self { came: Vec::new(), went: Vec::new(), moved: false };
        for (before, after) in &differences.units {
            match (was_own(before), is_own(after)) {
                (false, true) if before.machine.is_none() => units.came.push(after),
                (false, false) => {}
                (true, true) => units.moved |= before.machine != after.machine,
                (false, true) | (true, false) => units.moved = true,
            }
        }
        units.came.extend(differences.new_units.iter().filter(|unit| is_own(unit)));
        units.went.extend(differences.gone_units.iter().filter(|unit| was_own(unit)));
        units
    }
}

/// The state of one computation of the next view.
struct Follow<'a> {
    old: &'a ModelState,
    own: RunnerEntities<'a>,
    differences: StateDifferences<'a>,
    units: OwnUnits<'a>,
    next: View,
}

impl<'a> Follow<'a> {
    /// Returns true if changes of units decide what else is visible: another application or charm, or relations of a
    /// unit.
    fn sees_others(&self) -> bool {
        let Self { own, next, .. } = self;
        let runs = |unit: &Unit| unit.record.charm.map(|charm| charm.digest);
        let is_new = |unit: &Unit| runs(unit).is_some_and(|digest| !next.charms.contains_key(&digest));
        let was_last = |unit: &Unit| runs(unit).is_some_and(|digest| !self.is_needed(&digest));
        let comes_with_more = |unit: &Arc<Unit>| {
            let application = unit.name.application();
            let leads = |application: &Arc<Application>| {
                application.leader.as_ref().is_some_and(|leader| leader.unit == unit.name)
            };
            !next.applications.contains_key(application)
                || is_new(unit)
                || own.state.scope_count(&unit.name) > 0
                || !unit.record.relations.is_empty()
                || own.state.application(application).is_some_and(leads)
        };
        let takes_more = |unit: &Arc<Unit>| {
            !own.has_units_of(unit.name.application()) || was_last(unit) || self.ends_sight(unit, None)
        };
        let changes_more = |(before, after): &(&Arc<Unit>, &Arc<Unit>)| {
            if before.principal != after.principal {
                return true;
            }
            let other_charm = runs(before) != runs(after) && (is_new(after) || was_last(before));
            own.has_unit(&after.name) && (other_charm || self.ends_sight(before, Some(after)))
        };
        self.units.moved
            || self.units.came.iter().any(|unit| comes_with_more(unit))
            || self.units.went.iter().any(|unit| takes_more(unit))
            || self.differences.units.iter().any(changes_more)
    }

    /// Returns true if a unit of the runner still runs a charm, or will run it.
    fn is_needed(&self, digest: &Digest) -> bool {
        let RunnerEntities { state, agent, .. } = self.own;
        let mut wanted = state.applications_on(agent).filter_map(|name| state.application(name));
        state.charms_run_on(agent).any(|run| run == digest)
            || wanted.any(|application| application.charm.digest == *digest)
    }

    /// Returns true if a dead relation was visible only because this unit's record had it.
    fn ends_sight(&self, before: &Unit, after: Option<&Unit>) -> bool {
        let forgotten = before.record.relations.keys().filter(|id| {
            after.is_none_or(|after| !after.record.relations.contains_key(id))
                && self.next.relations.contains_key(*id)
        });
        let mut dead =
            forgotten.filter_map(|id| self.own.state.relation(id)).filter(|it| it.life == Life::Dead);
        dead.any(|relation| !self.own.has_part_in(relation))
    }

    /// Puts a machine into the view, or removes it if it is another agent's.
    fn show_machine(&mut self, id: MachineId) {
        if let Some(machine) = self.own.state.machine(&id) {
            self.own.show(machine, ViewEntity::Machine, ViewKey::Machine, &mut self.next);
        }
    }

    /// Updates machines whose firewall rules changed.
    fn machines(&mut self) {
        let opened = self.differences.units.iter().filter(|(before, after)| before.ports != after.ports);
        let opened = opened.map(|(_, after)| *after);
        let came_or_went = self.units.came.iter().chain(&self.units.went).copied();
        let machines = opened.chain(came_or_went.filter(|unit| !unit.ports.is_empty()));
        let mut ids: Vec<MachineId> = machines.filter_map(|unit| unit.machine).collect();
        for (_, application) in
            self.differences.applications.iter().filter(|change| is_exposed_otherwise(change))
        {
            let units = self.own.state.units_of(&application.name);
            ids.extend(units.filter(|unit| self.own.has_unit(&unit.name)).filter_map(|unit| unit.machine));
        }
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            self.show_machine(id);
        }
    }

    /// Updates the firewall rules of all machines if a cross-model relation changed.
    fn consumers(&mut self) {
        let state = self.own.state;
        let crosses = |id| state.relation(id).is_some_and(|relation| relation.cross.is_some());
        let members = self.differences.members.iter().map(|(id, _)| id);
        let bags = self.differences.bags.iter().map(|key| &key.relation);
        if !self.differences.relations.iter().chain(members).chain(bags).any(crosses) {
            return;
        }
        let ids: Vec<MachineId> = self.next.machines.keys().copied().collect();
        for id in ids {
            self.show_machine(id);
        }
    }

    fn secrets(&mut self) {
        let mut ids = std::mem::take(&mut self.differences.secrets);
        for unit in self.units.came.iter().chain(&self.units.went) {
            ids.extend(secrets_around(self.old, &unit.name));
            ids.extend(secrets_around(self.own.state, &unit.name));
        }
        for id in &ids {
            match self.own.secret(id) {
                Some(secret) => self.next.secrets.insert(*id, secret),
                None => self.next.secrets.remove(id),
            };
        }
    }
}
