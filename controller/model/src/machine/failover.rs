//! The failover of machines: units whose agent is gone go on elsewhere (`docs/hook-model.md` P-7).
//!
//! A machine moves with all its units. Nothing of them is lost: a unit's record is the controller's, and an agent keeps no
//! state of units but their storage. The earlier agent's commits are refused from then on, even if it only was cut off.

use std::{cell::OnceCell, collections::BTreeMap};

use periapt_host_api::{
    AgentName, MachineId, command::Placement, constraints::AgentConstraints, status::Life,
};

use super::assign::{admits, constraints_of, loads};
use crate::{
    entity::Machine,
    root::{ModelState, Root},
    transaction::Transaction,
    unit::workloads::status::may_run,
};

/// The most machines that one commit moves.
const MACHINES_PER_STEP: usize = 40;

/// The turn of the machines of an agent that is gone, in one model.
pub(crate) enum Turn {
    /// They can go elsewhere now.
    Now,
    /// They can go elsewhere after so many milliseconds.
    In(u64),
    /// They stay.
    Never,
}

/// Returns the milliseconds since the connection of an agent ended, by the controller's monotonic clock; none for an
/// agent that is connected.
pub(crate) fn gone_for(root: &Root, agent: &AgentName, now_ms: u64) -> Option<u64> {
    let presence = root.presence(agent).filter(|presence| !presence.connected)?;
    Some(now_ms.saturating_sub(presence.since_ms))
}

/// Returns the turn of the machines of an agent that has been gone for so many milliseconds.
pub(crate) fn turn(state: &ModelState, gone_for: u64) -> Turn {
    match state.config().agent_failover_after.milliseconds() {
        Some(after) if after <= gone_for => Turn::Now,
        Some(after) => Turn::In(after - gone_for),
        None => Turn::Never,
    }
}

/// The agents to which machines can go. They are looked up once they are needed: most of the time no agent is gone.
pub(crate) struct Destinations<'a> {
    root: &'a Root,
    lease_now_ms: u64,
    loads: OnceCell<BTreeMap<AgentName, usize>>,
}

impl<'a> Destinations<'a> {
    /// Returns the agents that are alive at a time of the controller's monotonic clock.
    pub(crate) fn new(root: &'a Root, lease_now_ms: u64) -> Self {
        Self { root, lease_now_ms, loads: OnceCell::new() }
    }

    fn loads(&self) -> &BTreeMap<AgentName, usize> {
        self.loads.get_or_init(|| loads(self.root, self.lease_now_ms))
    }

    /// Returns true if there is no such agent.
    pub(crate) fn is_empty(&self) -> bool {
        self.loads().is_empty()
    }

    /// Returns true if a machine of an agent that is gone can go elsewhere.
    pub(crate) fn can_take(&self, state: &ModelState, agent: &AgentName) -> bool {
        state
            .machines_of(agent)
            .filter(|machine| may_move(self.root, state, machine))
            .any(|machine| destination(self.root, state, machine.id, self.loads()).is_some())
    }
}

/// Moves machines of an agent that is gone, each to the agent with the fewest units that meets the constraints of all
/// applications on the machine.
pub(crate) fn move_machines(tx: &mut Transaction<'_>, agent: &AgentName) {
    let gone_for = gone_for(tx.root, agent, tx.env.lease_now_ms);
    if !gone_for.is_some_and(|gone_for| matches!(turn(&tx.state, gone_for), Turn::Now)) {
        return;
    }
    let mut loads = loads(tx.root, tx.env.lease_now_ms);
    let movable = tx.state.machines_of(agent).filter(|machine| may_move(tx.root, &tx.state, machine));
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

/// Returns true if nothing binds a machine to its agent: no unit on it has storage, which is on the agent's disk, or
/// workloads, which may run on there for as long as nobody reaches the agent, and none was placed on the agent by name.
fn may_move(root: &Root, state: &ModelState, machine: &Machine) -> bool {
    let is_bound = |placement: Option<&Placement>| matches!(placement, Some(Placement::Agent(_)));
    let mut units = state.units_on(&machine.id).peekable();
    machine.life == Life::Alive
        && units.peek().is_some()
        && units.all(|unit| {
            !is_bound(unit.placement.as_ref())
                && state.storages_of(&unit.name).next().is_none()
                && !may_run(root, state, unit)
        })
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
