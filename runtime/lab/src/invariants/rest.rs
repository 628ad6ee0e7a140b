//! Invariants on a model at rest.

use periapt_host_api::{
    UnitName,
    record::{Operation, RelationRecord},
    relation::{BagKey, BagOwner, Scope},
    status::{AgentStatus, Life},
    view::Membership,
};
use periapt_model::{
    ModelState,
    entity::{Relation, Unit},
};

use super::Violation;

/// Returns the reasons why a model is not at rest, though it was left alone for long enough and every hook
/// succeeds. At rest each unit runs its application's charm with its settings, knows each relation's members and
/// the newest of their bags, and nothing is dying.
pub fn rest_violations(state: &ModelState) -> Vec<Violation> {
    let mut violations = Vec::new();
    for application in state.applications().filter(|application| application.life != Life::Alive) {
        violations.push(Violation::new("L-2", format!("application {} is still there", application.name)));
    }
    for relation in state.relations().filter(|relation| relation.life != Life::Alive) {
        violations.push(Violation::new("R-10", format!("relation {} is still there", relation.id)));
    }
    for item in state.work() {
        violations.push(Violation::new("7.1", format!("the controller still has to {:?}", item.work)));
    }
    for unit in state.units() {
        unit_at_rest(state, unit, &mut violations);
    }
    violations
}

fn unit_at_rest(state: &ModelState, unit: &Unit, violations: &mut Vec<Violation>) {
    let record = &unit.record;
    let mut check = |rule, holds: bool, what: &str| {
        if !holds {
            violations.push(Violation::new(rule, format!("unit {} {what}", unit.name)));
        }
    };
    check("U-39", unit.life == Life::Alive, "is still there");
    check("1.5", record.operation == Operation::Continue, "has something in progress");
    check("1.8", record.installed && record.started && !record.stopped, "is not started");
    check("U-6", unit.agent_status.status == AgentStatus::Idle, "is not idle");
    check("U-27", unit.resolved.is_none(), "has an answer to no failure");
    if let Some(application) = state.application(unit.name.application()) {
        check("U-36", record.charm == Some(application.charm), "runs another charm than its application's");
        check("U-3", record.seen.config == application.config_hash, "has not seen its settings");
        check("U-3", record.seen.trust == application.trust_hash, "has not seen its trust");
        let leads = application.leader.as_ref().is_some_and(|leader| leader.unit == unit.name);
        check("1.7 rule 8", record.leader == leads, "is wrong about who leads");
    }
    for relation in state.relations_of(unit.name.application()).filter(|found| found.life == Life::Alive) {
        let implicit =
            relation.end_of(unit.name.application()).is_some_and(|end| end.name.as_str() == "juju-info");
        let others = relation.scope == Scope::Container && counterparts(state, unit, relation).is_empty();
        match record.relations.get(&relation.id) {
            Some(told) => relation_at_rest(state, unit, relation, told, violations),
            None if implicit || others => {}
            None => violations.push(Violation::new(
                "R-28",
                format!("unit {} is not in relation {}", unit.name, relation.id),
            )),
        }
    }
    for id in record.relations.keys().filter(|id| state.relation(id).is_none()) {
        violations.push(Violation::new("R-25", format!("unit {} still knows relation {id}", unit.name)));
    }
}

/// Returns the units at the other end that live in the same container.
fn counterparts(state: &ModelState, unit: &Unit, relation: &Relation) -> Vec<UnitName> {
    let Some(other) = relation.other_end(unit.name.application()) else { return Vec::new() };
    let principal = unit.principal.clone();
    let below = state.subordinates_of(&unit.name).map(|subordinate| subordinate.name.clone());
    principal.into_iter().chain(below).filter(|name| *name.application() == other.application).collect()
}

fn relation_at_rest(
    state: &ModelState,
    unit: &Unit,
    relation: &Relation,
    told: &RelationRecord,
    violations: &mut Vec<Violation>,
) {
    let about = format!("unit {} in relation {}", unit.name, relation.id);
    if !told.created || told.changed_pending.is_some() {
        violations.push(Violation::new("R-23", format!("{about} was not told all")));
    }
    let version = |owner: BagOwner| {
        let key = BagKey { relation: relation.id, owner };
        state.bag(&key).map_or(0, |bag| bag.version)
    };
    let container = relation.scope == Scope::Container;
    let company = counterparts(state, unit, relation);
    let present: Vec<(UnitName, u64)> = state
        .members(&relation.id)
        .filter(|(name, membership)| {
            **name != unit.name
                && *name.application() == told.remote_application
                && **membership == Membership::Joined
                && (!container || company.contains(name))
        })
        .map(|(name, _)| (name.clone(), version(BagOwner::Unit(name.clone()))))
        .collect();
    let known: Vec<(UnitName, u64)> = told.members.iter().map(|(name, version)| (name, *version)).collect();
    if present != known {
        violations
            .push(Violation::new("2.5", format!("{about} was told of {known:?}, and there is {present:?}")));
    }
    let newest = version(BagOwner::Application(told.remote_application.clone()));
    let seen = told.applications.get(&told.remote_application).copied().unwrap_or(0);
    if newest != seen {
        violations.push(Violation::new(
            "R-29",
            format!("{about} has seen version {seen} of the application's {newest}"),
        ));
    }
}
