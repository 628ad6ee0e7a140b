//! The state of migrations for operators, and the new controller for agents and clients.

use periapt_host_api::{
    AgentName, Refusal,
    agent::ControllerPlace,
    migration::{MigrationPhase, MigrationStatus},
};

use super::{
    entity::{Export, Failed, Migration, Moved},
    freeze::has_moved,
};
use crate::root::{ModelState, Root};

/// Returns the state of a model's migration to another controller; none if there was no migration.
pub fn migration_status(state: &ModelState) -> Option<MigrationStatus> {
    let model = state.model().uuid;
    let going = |phase, Export { id, target, since, expires_at, .. }: &Export| MigrationStatus {
        model,
        id: *id,
        phase,
        target: Some(target.clone()),
        since: *since,
        until: (phase == MigrationPhase::Exporting).then_some(*expires_at),
        reason: None,
    };
    match state.migration()? {
        Migration::Exporting(export) => Some(going(MigrationPhase::Exporting, export)),
        Migration::HandedOver(export) => Some(going(MigrationPhase::HandedOver, export)),
        Migration::Moved(Moved { id, target, since, expires_at }) => Some(MigrationStatus {
            model,
            id: *id,
            phase: MigrationPhase::Moved,
            target: Some(target.clone()),
            since: *since,
            until: Some(*expires_at),
            reason: None,
        }),
        Migration::Failed(Failed { id, at, reason, .. }) => Some(MigrationStatus {
            model,
            id: *id,
            phase: MigrationPhase::Failed,
            target: None,
            since: *at,
            until: None,
            reason: Some(reason.clone()),
        }),
        Migration::Importing(_) => None,
    }
}

/// Returns the controller to which an agent's models have moved; none while a model of the agent is here.
pub fn moved_to(root: &Root, agent: &AgentName) -> Option<ControllerPlace> {
    if !root.is_going(agent) {
        return None;
    }
    let mut place = None;
    for (_, state) in root.models_at(agent) {
        match state.migration() {
            Some(Migration::Moved(moved)) => place = Some(&moved.target),
            _ => return None,
        }
    }
    place.cloned()
}

/// Returns the refusal about a model that has moved; none for others.
pub fn moved_refusal(state: &ModelState) -> Option<Refusal> {
    match state.migration()? {
        Migration::Moved(moved) => Some(has_moved(state.model().name.as_str(), &moved.target)),
        _ => None,
    }
}
