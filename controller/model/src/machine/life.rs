//! The removal of the units on a machine that an operator removes by force (L-5).

use periapt_host_api::{MachineId, UnitName, command::Force, storage::UnitStorage};

use crate::{entity::Work, root::ModelState, transaction::Transaction, unit};

/// Destroys the units on a machine after one of them, while the commit has room. The worker goes on with the rest.
pub(crate) fn destroy_units_on(
    tx: &mut Transaction<'_>,
    machine: MachineId,
    force: Force,
    after: Option<UnitName>,
) {
    let next = |state: &ModelState, after: Option<&UnitName>| {
        let behind = |name: &UnitName| after.is_none_or(|after| name > after);
        state.units_on(&machine).find(|unit| behind(&unit.name)).cloned()
    };
    if let Some(unit::life::ResumeAfter(after)) =
        unit::life::destroy_each(tx, after, Some(force), UnitStorage::Detach, next)
    {
        tx.add_work(Work::DestroyUnitsOn { machine, force, after }, None);
    }
}
