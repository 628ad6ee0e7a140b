//! The next view from the last: what a commit costs a watcher is what it changed, not what the watcher sees.

use std::sync::Arc;

use periapt_host_api::{
    AgentName, RelationId,
    command::Caller,
    relation::{BagKey, BagOwner, Scope},
    settings::FirewallMode,
    status::Life,
    view::View,
};

use super::{Own, project, view};
use crate::{
    entity::{Application, Unit},
    root::{ModelState, Root, Touched},
};

/// The view at `root`, given the same caller's view at `before`. Equal to [`view`] at `root`, and shares with the
/// given one all that did not change.
pub fn follow(before: &Root, seen: &View, root: &Root, caller: &Caller) -> View {
    let Caller::Runner { agent, model } = caller else { return view(root, caller) };
    let (Some(old), Some(new)) = (before.model_or_remains(model), root.model_or_remains(model)) else {
        return view(root, caller);
    };
    let mut next = View { revision: root.revision(), ..seen.clone() };
    if before.looks_the_same(root, caller, model) {
        return next;
    }
    let touched = old.touched(new);
    if before.agent(agent) != root.agent(agent)
        || old.model().spaces != new.model().spaces
        || old.config().egress_subnets != new.config().egress_subnets
        || firewalls_differ(old, new, &touched)
        || touched.structure
        || decides_sight(old, new, &touched)
    {
        return view(root, caller);
    }
    next.model = Some(project::model(new));
    follow_units(root, new, agent, &touched, &mut next);
    follow_states(&touched, &mut next);
    follow_events(&touched, &mut next);
    follow_relations(new, agent, &touched, &mut next);
    follow_consumers(root, new, agent, &touched, &mut next);
    follow_tasks(&touched, &mut next);
    follow_storages(new, agent, &touched, &mut next);
    follow_secrets(new, agent, &touched, &mut next);
    next
}

/// Whether firewalls differ of more machines than those of the units and applications that changed.
fn firewalls_differ(old: &ModelState, new: &ModelState, touched: &Touched<'_>) -> bool {
    let (before, after) = (old.config().firewall_mode, new.config().firewall_mode);
    let opened = || touched.units.iter().any(|(before, after)| before.ports != after.ports);
    let exposed = || touched.applications.iter().any(is_exposed_otherwise);
    before != after || (after == FirewallMode::Global && (opened() || exposed()))
}

fn is_exposed_otherwise((old, new): &(&Arc<Application>, &Arc<Application>)) -> bool {
    (old.exposed, &old.exposures) != (new.exposed, &new.exposures)
}

/// Whether what changed in units and applications decides what else is seen.
fn decides_sight(old: &ModelState, new: &ModelState, touched: &Touched<'_>) -> bool {
    let application = |(old, new): &(&Arc<Application>, &Arc<Application>)| old.charm != new.charm;
    let unit = |(before, after): &(&Arc<Unit>, &Arc<Unit>)| {
        before.machine != after.machine
            || before.principal != after.principal
            || before.record.charm != after.record.charm
            || what_it_was_told_decides(old, new, before, after)
    };
    touched.applications.iter().any(application) || touched.units.iter().any(unit)
}

/// A dead relation is seen by whoever remembers it, and in a container scope former members by whoever was told
/// of them. In all other relations a unit's memory decides nothing.
fn what_it_was_told_decides(old: &ModelState, new: &ModelState, before: &Unit, after: &Unit) -> bool {
    let (was, is) = (&before.record.relations, &after.record.relations);
    let special = |state: &ModelState, id: &RelationId| {
        state
            .relation(id)
            .is_some_and(|relation| relation.life == Life::Dead || relation.scope == Scope::Container)
    };
    let differs = |id: &RelationId| match (was.get(id), is.get(id)) {
        (Some(was), Some(is)) => !was.members.keys().eq(is.members.keys()),
        _ => true,
    };
    was.keys().chain(is.keys()).any(|id| differs(id) && (special(old, id) || special(new, id)))
}

fn follow_units(root: &Root, state: &ModelState, agent: &AgentName, touched: &Touched<'_>, next: &mut View) {
    for (before, after) in &touched.units {
        let name = &after.name;
        if next.outlines.contains_key(name) {
            next.outlines.insert(name.clone(), project::outline(after));
        }
        if !next.units.contains_key(name) {
            continue;
        }
        if let Some(unit) = project::unit(state, after) {
            next.units.insert(name.clone(), unit);
        }
        let machine = after.machine.and_then(|id| state.machine(&id));
        if let Some(machine) = machine.filter(|_| before.ports != after.ports) {
            let found = project::Host::of(root, agent).machine(state, machine);
            next.machines.insert(machine.id, found);
        }
    }
    follow_exposures(root, state, agent, touched, next);
    for (_, application) in &touched.applications {
        if next.applications.contains_key(&application.name) {
            let found = project::application(state, application);
            next.applications.insert(application.name.clone(), found);
        }
    }
}

/// The firewalls of machines follow relations across models.
fn follow_consumers(
    root: &Root,
    state: &ModelState,
    agent: &AgentName,
    touched: &Touched<'_>,
    next: &mut View,
) {
    let crosses = |id: &RelationId| state.relation(id).is_some_and(|relation| relation.cross.is_some());
    if !touched.relations.iter().any(crosses) {
        return;
    }
    let host = project::Host::of(root, agent);
    let machines: Vec<_> = next.machines.keys().filter_map(|id| state.machine(id)).cloned().collect();
    for machine in machines {
        next.machines.insert(machine.id, host.machine(state, &machine));
    }
}

/// The firewalls of machines follow what is exposed.
fn follow_exposures(
    root: &Root,
    state: &ModelState,
    agent: &AgentName,
    touched: &Touched<'_>,
    next: &mut View,
) {
    let host = project::Host::of(root, agent);
    for (_, application) in touched.applications.iter().filter(|change| is_exposed_otherwise(change)) {
        for unit in state.units_of(&application.name).filter(|unit| next.units.contains_key(&unit.name)) {
            if let Some(machine) = unit.machine.and_then(|id| state.machine(&id)) {
                next.machines.insert(machine.id, host.machine(state, machine));
            }
        }
    }
}

fn follow_states(touched: &Touched<'_>, next: &mut View) {
    for (key, entry) in &touched.states {
        match entry {
            Some(entry) if next.units.contains_key(&key.unit) => {
                next.states.insert(key.clone(), project::state(entry));
            }
            _ => {
                next.states.remove(key);
            }
        }
    }
}

fn follow_events(touched: &Touched<'_>, next: &mut View) {
    for (unit, events) in &touched.events {
        match events.filter(|_| next.units.contains_key(unit)) {
            Some(events) => next.events.insert(unit.clone(), project::events(events)),
            None => next.events.remove(unit),
        };
    }
}

/// Tasks are seen with their unit, until they end.
fn follow_tasks(touched: &Touched<'_>, next: &mut View) {
    for (id, task) in &touched.tasks {
        match task.filter(|task| task.status.is_open() && next.units.contains_key(&task.unit)) {
            // A message that was sent is nothing that the agent sees.
            Some(task) => {
                let found = project::task(task);
                if next.tasks.get(id) != Some(&found) {
                    next.tasks.insert(*id, found);
                }
            }
            None => {
                next.tasks.remove(id);
            }
        }
    }
}

fn follow_relations(state: &ModelState, agent: &AgentName, touched: &Touched<'_>, next: &mut View) {
    for bag in &touched.bags {
        if next.bags.contains_key(&bag.key) {
            next.bags.insert(bag.key.clone(), project::bag(bag));
        }
    }
    let mut again = touched.relations.clone();
    for (old, new) in &touched.applications {
        // Whoever leads sees the application's own bags.
        if old.leader != new.leader {
            again.extend(state.relations_of(&new.name).map(|relation| relation.id));
        }
    }
    if again.is_empty() {
        return;
    }
    let own = Own::of(state, agent);
    for id in again {
        next.relations.remove(&id);
        for key in bags_of(next, id) {
            next.bags.remove(&key);
        }
        let relation = state.relation(&id).filter(|relation| own.has_part_in(relation));
        if let Some(relation) = relation {
            own.add_relation(relation, next);
        }
    }
}

fn follow_storages(state: &ModelState, agent: &AgentName, touched: &Touched<'_>, next: &mut View) {
    if touched.storages.is_empty() {
        return;
    }
    let own = Own::of(state, agent);
    for id in &touched.storages {
        match state.storage(id).filter(|storage| own.sees_storage(agent, storage)) {
            Some(storage) => next.storages.insert((*id).clone(), project::storage(storage)),
            None => next.storages.remove(*id),
        };
    }
}

fn follow_secrets(state: &ModelState, agent: &AgentName, touched: &Touched<'_>, next: &mut View) {
    if touched.secrets.is_empty() {
        return;
    }
    let own = Own::of(state, agent);
    for id in &touched.secrets {
        match own.secret(id) {
            Some(secret) => next.secrets.insert(*id, secret),
            None => next.secrets.remove(id),
        };
    }
}

fn bags_of(view: &View, relation: RelationId) -> Vec<BagKey> {
    // The first key of a relation: units before applications, and no name is before the shortest.
    let Ok(first) = "a".parse() else { return Vec::new() };
    let first = BagOwner::Unit(periapt_host_api::UnitName::new(first, 0));
    let keys = view.bags.range(BagKey { relation, owner: first }..).map(|(key, _)| key);
    keys.take_while(|key| key.relation == relation).cloned().collect()
}
