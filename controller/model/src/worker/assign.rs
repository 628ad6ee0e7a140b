//! The unit assigner: a machine for each principal unit (`hook-model.md` 7.2, `design.md` section 2).

use std::{collections::BTreeMap, sync::Arc};

use periapt_host_api::{
    AgentName, MachineId, Refusal, Timestamp,
    command::Placement,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
};

use crate::{
    entity::{Machine, SequenceKey, Unit},
    root::{ModelState, Root},
    transaction::Transaction,
};

/// How many units are placed in one commit: each takes a machine.
const UNITS_PER_STEP: usize = 40;

/// Where a unit goes.
enum Place {
    Existing(MachineId),
    NewOn(AgentName),
}

/// Whether a try to place units would change something: one can be placed, was never tried, or cannot be placed
/// for another reason than the one that its status tells.
pub(crate) fn has_news(root: &Root, state: &ModelState, now: Timestamp) -> bool {
    if state.unplaced().next().is_none() {
        return false;
    }
    let least = fewest_units(&loads(root, now));
    state.unplaced().any(|unit| match find_place(root, state, unit, least.as_ref()) {
        Ok(_) => true,
        Err(reason) => unit.agent_status.status != AgentStatus::Error || unit.agent_status.message != reason,
    })
}

/// Places units, or says in their status why that is impossible now (Q08).
pub(crate) fn assign_units(tx: &mut Transaction<'_>) -> Result<(), Refusal> {
    let mut loads = loads(tx.root, tx.now());
    let waiting: Vec<Arc<Unit>> = tx.state.unplaced().cloned().collect();
    let mut changed = 0;
    for unit in waiting {
        if changed >= UNITS_PER_STEP {
            break;
        }
        let least = fewest_units(&loads);
        let found = find_place(tx.root, &tx.state, &unit, least.as_ref());
        let mut unit = Unit::clone(&unit);
        let now = tx.now();
        match found {
            Ok(place) => {
                let machine = match place {
                    Place::Existing(id) => id,
                    Place::NewOn(agent) => new_machine(tx, agent)?,
                };
                unit.machine = Some(machine);
                if let Some(agent) = tx.state.agent_of(&unit)
                    && let Some(load) = loads.get_mut(agent)
                {
                    *load += 1;
                }
                tx.set_agent_status(&mut unit, StatusInfo::new(AgentStatus::Allocating, "", now));
                let waits = StatusInfo::new(WorkloadStatus::Waiting, "agent initialising", now);
                tx.set_workload_status(&mut unit, waits);
                changed += 1;
            }
            Err(reason) => {
                let before = unit.agent_status.clone();
                tx.set_agent_status(&mut unit, StatusInfo::new(AgentStatus::Error, reason, now));
                changed += usize::from(unit.agent_status != before);
            }
        }
        tx.put(unit);
    }
    Ok(())
}

fn new_machine(tx: &mut Transaction<'_>, agent: AgentName) -> Result<MachineId, Refusal> {
    let id = MachineId(tx.take_numbers(SequenceKey::Machine, 1)?);
    tx.put(Machine { id, agent, life: Life::Alive, created_at: tx.now() });
    Ok(id)
}

fn find_place(
    root: &Root,
    state: &ModelState,
    unit: &Unit,
    least: Option<&AgentName>,
) -> Result<Place, String> {
    match &unit.placement {
        Some(Placement::Machine(id)) => match state.machine(id) {
            Some(machine) if machine.life == Life::Alive => Ok(Place::Existing(*id)),
            Some(_) => Err(format!("cannot place unit: machine {id} is going")),
            None => Err(format!("cannot place unit: machine {id} is gone")),
        },
        Some(Placement::Agent(name)) => match root.agent(name) {
            Some(_) => Ok(Place::NewOn(name.clone())),
            None => Err(format!("cannot place unit: agent {:?} is not registered", name.as_str())),
        },
        None => least
            .map(|agent| Place::NewOn(agent.clone()))
            .ok_or_else(|| "waiting for an agent: none is connected".to_owned()),
    }
}

/// The agents that are alive, with how many units each runs over all models.
fn loads(root: &Root, now: Timestamp) -> BTreeMap<AgentName, usize> {
    let alive = root.agents().filter(|agent| root.is_alive(&agent.name, now));
    alive.map(|agent| (agent.name.clone(), units_of_agent(root, &agent.name))).collect()
}

fn fewest_units(loads: &BTreeMap<AgentName, usize>) -> Option<AgentName> {
    loads.iter().min_by_key(|(_, units)| **units).map(|(name, _)| name.clone())
}

/// How many units an agent runs, over all models.
pub(crate) fn units_of_agent(root: &Root, agent: &AgentName) -> usize {
    let on_machines = |state: &ModelState| -> usize {
        state.machines_of(agent).map(|machine| state.unit_count_on(&machine.id)).sum()
    };
    root.models().map(|(_, state)| on_machines(state)).sum()
}
