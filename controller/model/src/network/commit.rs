//! The opening and closing of ports (`docs/hook-model.md` 5.5). All units of a machine share its ports.

use periapt_host_api::{
    ErrorCode, Refusal, UnitName,
    commit::PortChanges,
    ports::{PortRange, PortTable},
};

use crate::{entity::Unit, transaction::Transaction};

/// The most pairs of a port range and an endpoint that a unit may open. They are part of the views of all units on
/// the machine.
const MAX_OPEN: usize = 1000;

/// Applies a hook's changes to the open ports of its unit: first the closed ones, then the opened ones.
pub(crate) fn apply(tx: &Transaction<'_>, unit: &mut Unit, changes: &PortChanges) -> Result<(), Refusal> {
    if changes.open.is_empty() && changes.close.is_empty() {
        return Ok(());
    }
    let mut table = PortTable::new(&unit.ports);
    for request in &changes.close {
        check_conflicts(tx, unit, &table, request.range, "close")?;
    }
    table.apply(&PortChanges { close: changes.close.clone(), ..PortChanges::default() });
    for request in &changes.open {
        check_conflicts(tx, unit, &table, request.range, "open")?;
        table.open(request.range, request.endpoint.clone());
    }
    if table.len() > MAX_OPEN {
        let text = format!("{} open ports, at most {MAX_OPEN} are allowed", table.len());
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("unit {}", unit.name)));
    }
    unit.ports = table.to_opened();
    Ok(())
}

/// Refuses a range that overlaps another open range. The same range of the same unit is no conflict.
fn check_conflicts(
    tx: &Transaction<'_>,
    unit: &Unit,
    table: &PortTable,
    range: PortRange,
    verb: &str,
) -> Result<(), Refusal> {
    if let Some(own) = table.overlapping(&range) {
        return Err(conflict(verb, &unit.name, range, &unit.name, own));
    }
    let Some(machine) = unit.machine else { return Ok(()) };
    for other in tx.state.units_on(&machine).filter(|other| other.name != unit.name) {
        if let Some(taken) = other.ports.iter().find(|opened| opened.range.overlaps(&range)) {
            return Err(conflict(verb, &unit.name, range, &other.name, taken.range));
        }
    }
    Ok(())
}

fn conflict(verb: &str, unit: &UnitName, range: PortRange, other: &UnitName, taken: PortRange) -> Refusal {
    let text =
        format!("cannot {verb} {range} (unit {unit:?}): port range conflicts with {taken} (unit {other:?})");
    Refusal::conflict(text).about(format!("unit {unit}"))
}
