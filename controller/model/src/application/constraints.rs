//! Constraints: they choose the agents for new units, and limit workloads and hooks.

use periapt_host_api::{
    ApplicationName, Refusal, UnitName,
    budget::BudgetSettings,
    charm::CharmMeta,
    command::Answer,
    constraints::{Constraints, Limited},
    status::{AgentStatus, StatusInfo},
};

use crate::{
    controller::level,
    entity::{Application, Unit},
    root::Root,
    transaction::Transaction,
};

pub(crate) fn set(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    constraints: &Constraints,
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    check_of_application(constraints, application.subordinate)
        .map_err(|refusal| refusal.about(format!("application {name}")))?;
    application.constraints = constraints.agents.clone();
    application.kept_constraints = constraints.kept.clone();
    let limited = limited(tx.charm_meta(&application)?);
    set_limits(tx.root, &mut application.budgets, constraints, limited)?;
    tx.put(application);
    Ok(Answer::Done)
}

pub(crate) fn set_model(tx: &mut Transaction<'_>, constraints: &Constraints) -> Result<Answer, Refusal> {
    let mut model = tx.state.model().clone();
    check(constraints)?;
    model.constraints = constraints.agents.clone();
    model.kept_constraints = constraints.kept.clone();
    set_limits(tx.root, &mut model.settings.budgets, constraints, Limited::Both)?;
    tx.put(model);
    Ok(Answer::Done)
}

/// Refuses invalid constraints.
fn check(constraints: &Constraints) -> Result<(), Refusal> {
    constraints.check().map_err(|error| Refusal::bad_request(error.to_string()))
}

/// Refuses invalid constraints of an application, and any constraints on a subordinate one, whose units are placed
/// with their principals.
pub(crate) fn check_of_application(constraints: &Constraints, subordinate: bool) -> Result<(), Refusal> {
    check(constraints)?;
    match subordinate && !constraints.is_empty() {
        true => Err(Refusal::bad_request(
            "constraints do not apply to subordinate applications: their units go where their principals are",
        )),
        false => Ok(()),
    }
}

/// Returns what the constraints of an application with this charm limit.
pub fn limited(meta: &CharmMeta) -> Limited {
    match meta.containers.is_empty() {
        true => Limited::Hooks,
        false => Limited::Workloads,
    }
}

/// Sets the limits that constraints ask: Juju's `mem` and `cpu-power`, and settings such as `workload-memory-limit`, are
/// the same. Programs of a lower level know the limit on hooks alone.
pub(crate) fn set_limits(
    root: &Root,
    budgets: &mut BudgetSettings,
    constraints: &Constraints,
    limited: Limited,
) -> Result<(), Refusal> {
    let limited = if root.level() < level::OF_WORKLOADS { Limited::Hooks } else { limited };
    let limits = constraints.limits(limited).map_err(|error| Refusal::bad_request(error.to_string()))?;
    for (key, limit) in limits {
        match limit {
            Some(limit) => drop(budgets.0.insert(key, limit)),
            None => budgets.reset(key),
        }
    }
    Ok(())
}

/// Asks the placement worker to try a unit again, though nothing else has changed (P-2).
pub(crate) fn retry(tx: &mut Transaction<'_>, name: &UnitName) -> Result<Answer, Refusal> {
    let mut unit = Unit::clone(&*tx.unit(name)?);
    if let Some(machine) = unit.machine {
        let text = format!("cannot retry provisioning of unit {name:?}: it has machine {machine}");
        return Err(Refusal::conflict(text).about(format!("unit {name}")));
    }
    let now = tx.now();
    tx.set_agent_status(&mut unit, StatusInfo::new(AgentStatus::Allocating, "", now));
    tx.put(unit);
    Ok(Answer::Done)
}
