//! The removal of machines. The unit assigner makes them.

use periapt_host_api::{
    MachineId, Refusal, UnitName,
    command::{Answer, Force},
    status::Life,
};

use super::life;
use crate::{
    entity::{Machine, ModelKey},
    transaction::Transaction,
};

pub(crate) fn remove(
    tx: &mut Transaction<'_>,
    id: MachineId,
    force: Option<Force>,
) -> Result<Answer, Refusal> {
    let about = format!("machine {id}");
    let machine = tx
        .state
        .machine(&id)
        .cloned()
        .ok_or_else(|| Refusal::not_found(format!("machine {id} not found")).about(about.clone()))?;
    let units: Vec<UnitName> = tx.state.units_on(&id).map(|unit| unit.name.clone()).collect();
    if units.is_empty() {
        tx.delete(ModelKey::Machine(id));
        return Ok(Answer::Removal { gone: true, waits_for: Vec::new() });
    }
    let Some(force) = force else {
        // L-5
        let names: Vec<String> = units.iter().map(|unit| format!("{unit:?}")).collect();
        let plural = if names.len() == 1 { "" } else { "s" };
        let text = format!("machine {id} has unit{plural} {} assigned", names.join(", "));
        return Err(Refusal::conflict(text).about(about));
    };
    tx.put(Machine { life: Life::Dying, ..Machine::clone(&machine) });
    life::destroy_units_on(tx, id, force, None);
    let waits_for: Vec<String> =
        tx.state.units_on(&id).map(|unit| format!("unit {} to be removed", unit.name)).collect();
    Ok(Answer::Removal { gone: tx.state.machine(&id).is_none(), waits_for })
}
