//! The failover of machines: units whose agent is gone go on elsewhere (`docs/hook-model.md` P-7).
//!
//! A machine moves with all its units. Nothing of them is lost: a unit's record is the controller's, and an agent keeps no
//! state of units but their storage. The earlier agent's commits are refused from then on, even if it only was cut off.

use std::{cell::OnceCell, collections::BTreeMap};

use periapt_host_api::{
    AgentName, MachineId, ModelUuid, Timestamp, command::Placement, constraints::AgentConstraints,
    status::Life, timing::FAILOVER_AFTER,
};

use super::assign::{admits, constraints_of, loads};
use crate::{
    entity::Machine,
    root::{ModelState, Root},
    transaction::Transaction,
};

/// The most machines that one commit moves.
const MACHINES_PER_STEP: usize = 40;

/// Returns the time at which the units of an agent may go elsewhere; none for an agent that is connected.
pub(crate) fn moves_at(root: &Root, agent: &AgentName) -> Option<Timestamp> {
    let presence = root.presence(agent).filter(|presence| !presence.connected)?;
    Some(presence.last_seen.checked_add(FAILOVER_AFTER).unwrap_or(Timestamp::MAX))
}

/// Returns the models with machines of agents that are gone, together with the agent, if a machine can go elsewhere.
pub(crate) fn due(root: &Root, now: Timestamp) -> impl Iterator<Item = (&ModelUuid, &AgentName)> {
    let gone: Vec<&AgentName> =
        root.agents().map(|agent| &agent.name).filter(|name| is_gone(root, name, now)).collect();
    // Most of the time no agent is gone, or what is left there cannot move: then the loads of agents are not needed.
    let loaded = OnceCell::new();
    let can_move = move |state: &ModelState, agent: &AgentName| {
        state.machines_of(agent).filter(|machine| may_move(state, machine)).any(|machine| {
            destination(root, state, machine.id, loaded.get_or_init(|| loads(root, now))).is_some()
        })
    };
    let models = if gone.is_empty() { None } else { Some(root.models()) };
    models.into_iter().flatten().flat_map(move |(uuid, state)| {
        let agents: Vec<&AgentName> = gone.iter().filter(|agent| can_move(state, agent)).copied().collect();
        agents.into_iter().map(move |agent| (uuid, agent))
    })
}

/// Moves machines of an agent that is gone, each to the agent with the fewest units that meets the constraints of all
/// applications on the machine.
pub(crate) fn move_machines(tx: &mut Transaction<'_>, agent: &AgentName) {
    if !is_gone(tx.root, agent, tx.now()) {
        return;
    }
    let mut loads = loads(tx.root, tx.now());
    let movable = tx.state.machines_of(agent).filter(|machine| may_move(&tx.state, machine));
    let movable: Vec<Machine> = movable.map(|machine| Machine::clone(machine)).collect();
    let mut moved = 0;
    for machine in movable {
        let Some(to) = destination(tx.root, &tx.state, machine.id, &loads).cloned() else { continue };
        if let Some(load) = loads.get_mut(&to) {
            *load += tx.state.units_on(&machine.id).count();
        }
        tx.put(Machine { agent: to, ..machine });
        moved += 1;
        if moved == MACHINES_PER_STEP {
            break;
        }
    }
}

/// Returns true if an agent has had no connection for so long that its units go elsewhere. An agent last seen that far in
/// the future, because the clock was set back, counts as gone, too.
fn is_gone(root: &Root, agent: &AgentName, now: Timestamp) -> bool {
    root.presence(agent).is_some_and(|presence| {
        !presence.connected && now.duration_since(presence.last_seen).unsigned_abs() >= FAILOVER_AFTER
    })
}

/// Returns true if nothing binds a machine to its agent: no unit on it has storage, which is on the agent's disk, and
/// none was placed on the agent by name.
fn may_move(state: &ModelState, machine: &Machine) -> bool {
    let is_bound = |placement: Option<&Placement>| matches!(placement, Some(Placement::Agent(_)));
    let mut units = state.units_on(&machine.id).peekable();
    machine.life == Life::Alive
        && units.peek().is_some()
        && units
            .all(|unit| !is_bound(unit.placement.as_ref()) && state.storages_of(&unit.name).next().is_none())
}

/// Returns the agent to which a machine can go.
fn destination<'a>(
    root: &Root,
    state: &ModelState,
    machine: MachineId,
    loads: &'a BTreeMap<AgentName, usize>,
) -> Option<&'a AgentName> {
    // A subordinate follows its principal, whatever its own constraints.
    let principals = state.units_on(&machine).filter(|unit| unit.principal.is_none());
    let constraints: Vec<AgentConstraints> =
        principals.map(|unit| constraints_of(state, unit.name.application())).collect();
    let fitting = loads
        .iter()
        .filter(|(name, _)| constraints.iter().all(|constraints| admits(root, name, constraints)));
    fitting.min_by_key(|(_, units)| **units).map(|(name, _)| name)
}
