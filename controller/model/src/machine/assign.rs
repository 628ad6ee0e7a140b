//! The unit assigner: it finds a machine for each principal unit (`docs/hook-model.md` 7.2).

use std::collections::BTreeMap;

use periapt_host_api::{
    AgentName, ApplicationName, MachineId, Refusal,
    command::Placement,
    constraints::AgentConstraints,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
};

use crate::{
    entity::{Machine, SequenceKey, Unit},
    root::{ModelState, Root},
    transaction::Transaction,
};

/// The most units that one commit places. Each takes a machine.
const UNITS_PER_STEP: usize = 40;

/// The machine for a unit.
enum MachineChoice {
    Existing(MachineId),
    NewOn(AgentName),
}

/// The reason why a unit cannot be placed, as its status gives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Unplaceable {
    #[error("cannot place unit: machine {0} is dying")]
    MachineGoing(MachineId),
    #[error("cannot place unit: machine {0} was removed")]
    MachineGone(MachineId),
    #[error("cannot place unit: agent {:?} is not registered", .0.as_str())]
    UnknownAgent(AgentName),
    #[error("cannot place unit: agent {:?} goes with a model that migrates", .0.as_str())]
    GoingAgent(AgentName),
    #[error("waiting for an agent: none is connected")]
    NoneConnected,
    #[error("waiting for an agent: none that is connected meets the constraints {0}")]
    NoneFits(AgentConstraints),
}

/// Returns true if a try to place units would change something: a unit can be placed, was never tried, or has another
/// reason in its status.
pub(crate) fn has_news(root: &Root, state: &ModelState, lease_now_ms: u64) -> bool {
    if state.unplaced().next().is_none() {
        return false;
    }
    let loads = loads(root, lease_now_ms);
    // Units of one application have the same constraints, and are adjacent.
    let mut last: Option<(&ApplicationName, ChosenAgent)> = None;
    state.unplaced().any(|unit| {
        let application = unit.name.application();
        let found = match &last {
            Some((of, found)) if *of == application => found.clone(),
            _ => {
                let found = fewest_units(root, state, application, &loads);
                last = Some((application, found.clone()));
                found
            }
        };
        match find_place(root, state, unit, found) {
            Ok(_) => true,
            Err(reason) => {
                unit.agent_status.status != AgentStatus::Error
                    || unit.agent_status.message != reason.to_string()
            }
        }
    })
}

/// Places units, or sets their status to the reason that prevents it (Q08).
pub(crate) fn assign_units(tx: &mut Transaction<'_>) -> Result<(), Refusal> {
    let mut loads = loads(tx.root, tx.env.lease_now_ms);
    let mut changed = 0;
    for name in tx.state.unplaced_names() {
        if changed >= UNITS_PER_STEP {
            break;
        }
        let Some(unit) = tx.state.unit(&name).cloned() else { continue };
        let found = fewest_units(tx.root, &tx.state, unit.name.application(), &loads);
        let found = find_place(tx.root, &tx.state, &unit, found);
        let mut unit = Unit::clone(&unit);
        let now = tx.now();
        match found {
            Ok(place) => {
                let machine = match place {
                    MachineChoice::Existing(id) => id,
                    MachineChoice::NewOn(agent) => new_machine(tx, agent)?,
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
                tx.set_agent_status(&mut unit, StatusInfo::new(AgentStatus::Error, reason.to_string(), now));
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
    found: ChosenAgent,
) -> Result<MachineChoice, Unplaceable> {
    match &unit.placement {
        Some(Placement::Machine(id)) => match state.machine(id) {
            Some(machine) if machine.life == Life::Alive => Ok(MachineChoice::Existing(*id)),
            Some(_) => Err(Unplaceable::MachineGoing(*id)),
            None => Err(Unplaceable::MachineGone(*id)),
        },
        Some(Placement::Agent(name)) => match root.agent(name) {
            Some(_) if root.is_going(name) => Err(Unplaceable::GoingAgent(name.clone())),
            Some(_) => Ok(MachineChoice::NewOn(name.clone())),
            None => Err(Unplaceable::UnknownAgent(name.clone())),
        },
        None => found.map(MachineChoice::NewOn),
    }
}

/// Returns the agents that are alive, with the number of units of each over all models.
pub(super) fn loads(root: &Root, lease_now_ms: u64) -> BTreeMap<AgentName, usize> {
    let alive = root.agents().filter(|agent| root.is_alive(&agent.name, lease_now_ms));
    let alive = alive.filter(|agent| !root.is_going(&agent.name));
    alive.map(|agent| (agent.name.clone(), root.unit_count_at(&agent.name))).collect()
}

/// The agent for a unit without a placement directive, or the reason why there is none.
type ChosenAgent = Result<AgentName, Unplaceable>;

/// Returns the agent with the fewest units, among those that are alive and meet an application's constraints.
fn fewest_units(
    root: &Root,
    state: &ModelState,
    application: &ApplicationName,
    loads: &BTreeMap<AgentName, usize>,
) -> ChosenAgent {
    let constraints = constraints_of(state, application);
    let fitting = loads.iter().filter(|(name, _)| admits(root, name, &constraints));
    let least = fitting.min_by_key(|(_, units)| **units).map(|(name, _)| name.clone());
    least.ok_or(match loads.is_empty() {
        true => Unplaceable::NoneConnected,
        false => Unplaceable::NoneFits(constraints),
    })
}

/// Returns the constraints on the agents of an application's units.
pub(super) fn constraints_of(state: &ModelState, application: &ApplicationName) -> AgentConstraints {
    let of_model = &state.model().constraints;
    match state.application(application) {
        Some(application) => application.constraints.or(of_model),
        None => of_model.clone(),
    }
}

/// Returns true if an agent meets constraints.
pub(super) fn admits(root: &Root, name: &AgentName, constraints: &AgentConstraints) -> bool {
    root.agent(name).is_some_and(|agent| {
        let host = &agent.host;
        constraints.admit(&host.tags, &host.availability_zone, host.cores)
    })
}
