//! Entering and leaving the scopes of relations (`docs/hook-model.md` 2.3).

use std::collections::BTreeMap;

use periapt_host_api::{
    UnitMap,
    record::RelationRecord,
    relation::{Endpoint, Role, Scope},
    status::Life,
    view::RelationView,
};

use super::input::{RelationInput, company};
use crate::{Decision, Progress, resolve_input::ResolveInput};

/// The most scopes that one commit enters: each may create a subordinate with its storage, and a commit may write 100
/// keys.
pub const MAX_SCOPES_PER_COMMIT: usize = 5;

/// The most scopes that one commit leaves: each takes a few keys.
const MAX_SCOPES_LEFT: usize = 20;

/// The endpoint that every application has implicitly.
const IMPLICIT: &str = "juju-info";

/// Enters the scopes of all relations that the unit should be in. One commit enters the scope and makes
/// relation-created due (section 0 of `docs/hook-model.md`, R-28).
pub(super) fn enter(input: &ResolveInput<'_>) -> Option<Decision> {
    let mut progress = Progress::after(input.record());
    for relation in input.view.relations.values() {
        if progress.transitions.enter_scope.len() == MAX_SCOPES_PER_COMMIT {
            break;
        }
        let Some((own, other)) = ends(input, relation) else { continue };
        if is_in(input, relation, own) || !may_enter(input, relation, other) {
            continue;
        }
        progress.transitions.enter_scope.insert(relation.id);
        if !is_implicit(input, own) {
            progress.record.relations.insert(relation.id, fresh(own, other));
        }
    }
    (!progress.transitions.enter_scope.is_empty()).then(|| Decision::Commit(Box::new(progress)))
}

/// Leaves relations that end without a hook: implicit ones, and those that ended before the charm was told of
/// their creation.
pub(super) fn leave(input: &ResolveInput<'_>, relations: &[RelationInput<'_>]) -> Option<Decision> {
    let implicit = input.view.relations.values().filter(|relation| {
        let ending = !input.alive() || relation.life != Life::Alive || relation.suspended;
        ending
            && ends(input, relation)
                .is_some_and(|(own, _)| is_implicit(input, own) && is_in(input, relation, own))
    });
    let untold = relations.iter().filter(|relation| relation.ending() && !relation.told.created);

    let mut progress = Progress::after(input.record());
    for relation in implicit.take(MAX_SCOPES_LEFT) {
        progress.transitions.leave_scope.insert(relation.id);
    }
    let mut left = progress.transitions.leave_scope.len();
    for relation in untold.take(MAX_SCOPES_LEFT.saturating_sub(left)) {
        progress.record.relations.remove(&relation.id);
        if !relation.gone() {
            progress.transitions.leave_scope.insert(relation.id);
        }
        left += 1;
    }
    (left > 0).then(|| Decision::Commit(Box::new(progress)))
}

fn fresh(own: &Endpoint, other: &Endpoint) -> RelationRecord {
    RelationRecord {
        endpoint: own.name.clone(),
        remote_application: other.application.clone(),
        created: false,
        members: UnitMap::new(),
        applications: BTreeMap::new(),
        changed_pending: None,
        gone: 0,
    }
}

/// Returns this unit's end of a relation and the other end; none for a relation of other applications.
fn ends<'a>(input: &ResolveInput<'_>, relation: &'a RelationView) -> Option<(&'a Endpoint, &'a Endpoint)> {
    let application = input.unit.name.application();
    Some((relation.end_of(application)?, relation.other_end(application)?))
}

/// Returns true if the unit is in the scope. Implicit relations are not in the record, because the charm does not
/// know them.
fn is_in(input: &ResolveInput<'_>, relation: &RelationView, own: &Endpoint) -> bool {
    match is_implicit(input, own) {
        true => relation.members.contains_key(&input.unit.name),
        false => input.record().relations.contains_key(&relation.id),
    }
}

fn is_implicit(input: &ResolveInput<'_>, own: &Endpoint) -> bool {
    let digest = input.record().charm.unwrap_or(input.application.charm).digest;
    let declares = |end: &Endpoint| {
        input.view.charms.get(&digest).is_some_and(|charm| charm.meta.endpoints.contains_key(&end.name))
    };
    own.role == Role::Provider && own.name.as_str() == IMPLICIT && !declares(own)
}

fn may_enter(input: &ResolveInput<'_>, relation: &RelationView, other: &Endpoint) -> bool {
    if relation.life != Life::Alive || relation.suspended {
        return false;
    }
    match relation.scope {
        Scope::Global => true,
        Scope::Container => {
            let company = company(input, &other.application);
            match input.unit.principal {
                // A principal's entry creates its subordinate. A dying earlier subordinate must be gone first.
                None => company.iter().all(|unit| is_alive(input, unit)),
                // A subordinate is not in the relations of other principals.
                Some(_) => !company.is_empty(),
            }
        }
    }
}

/// Returns true if a unit of the same container is alive, as far as the view shows it.
fn is_alive(input: &ResolveInput<'_>, unit: &periapt_host_api::UnitName) -> bool {
    let own = input.view.units.get(unit).map(|unit| unit.life);
    let life = own.or_else(|| input.view.outlines.get(unit).map(|outline| outline.life));
    life.is_none_or(|life| life == Life::Alive)
}
