//! Constraints: they choose the agents for new units, and bound the memory of hooks.

use periapt_host_api::{
    ApplicationName, Refusal, UnitName,
    budget::{BudgetKey, BudgetSettings},
    command::Answer,
    constraints::Constraints,
    status::{AgentStatus, StatusInfo},
};

use crate::{
    entity::{Application, Unit},
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
    set_memory(&mut application.budgets, constraints.mem);
    tx.put(application);
    Ok(Answer::Done)
}

pub(crate) fn set_model(tx: &mut Transaction<'_>, constraints: &Constraints) -> Result<Answer, Refusal> {
    let mut model = tx.state.model().clone();
    check(constraints)?;
    model.constraints = constraints.agents.clone();
    model.kept_constraints = constraints.kept.clone();
    set_memory(&mut model.settings.budgets, constraints.mem);
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

/// Sets the memory limit of hooks: Juju's `mem` and the setting `hook-memory-limit` are the same.
pub(crate) fn set_memory(budgets: &mut BudgetSettings, bytes: Option<u64>) {
    match bytes {
        Some(bytes) => drop(budgets.0.insert(BudgetKey::HookMemoryLimit, bytes)),
        None => budgets.reset(BudgetKey::HookMemoryLimit),
    }
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
