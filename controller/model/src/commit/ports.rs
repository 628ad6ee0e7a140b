//! Opening and closing ports (`hook-model.md` 5.5). Conflicts are between all units of a machine.

use std::collections::BTreeSet;

use periapt_host_api::{
    EndpointName, ErrorCode, Refusal, UnitName,
    commit::{PortChanges, PortRequest},
    ports::{OpenedPorts, PortRange},
};

use crate::{entity::Unit, transaction::Transaction};

/// The most ranges that a unit may have open: they are part of the views of all units of the machine.
const MAX_RANGES: usize = 1000;

pub(super) fn apply(tx: &Transaction<'_>, unit: &mut Unit, changes: &PortChanges) -> Result<(), Refusal> {
    if changes.open.is_empty() && changes.close.is_empty() {
        return Ok(());
    }
    let endpoints = endpoints(tx, unit)?;
    for request in &changes.close {
        check_endpoint(&endpoints, request)?;
        close(tx, unit, &endpoints, request)?;
    }
    for request in &changes.open {
        check_endpoint(&endpoints, request)?;
        open(tx, unit, request)?;
    }
    if unit.ports.len() > MAX_RANGES {
        let text = format!("{} port ranges open, at most {MAX_RANGES} are allowed", unit.ports.len());
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("unit {}", unit.name)));
    }
    unit.ports.sort();
    Ok(())
}

/// The endpoints that the unit's charm declares: the one that it runs, else the one that it should run.
fn endpoints(tx: &Transaction<'_>, unit: &Unit) -> Result<BTreeSet<EndpointName>, Refusal> {
    let running = unit.record.charm.and_then(|charm| tx.root.charm(&charm.digest)).map(|charm| &charm.meta);
    let meta = match running {
        Some(meta) => meta,
        None => tx.charm_meta(&*tx.application(unit.name.application())?)?,
    };
    Ok(meta.endpoints.keys().cloned().collect())
}

fn check_endpoint(endpoints: &BTreeSet<EndpointName>, request: &PortRequest) -> Result<(), Refusal> {
    match &request.endpoint {
        Some(name) if !endpoints.contains(name) => {
            Err(Refusal::not_found(format!("endpoint {:?} not found", name.as_str())))
        }
        _ => Ok(()),
    }
}

fn open(tx: &Transaction<'_>, unit: &mut Unit, request: &PortRequest) -> Result<(), Refusal> {
    check_conflicts(tx, unit, request.range, "open")?;
    match unit.ports.iter_mut().find(|opened| opened.range == request.range) {
        Some(opened) => match &request.endpoint {
            // For all of them; which a single one adds nothing to.
            None => opened.endpoints.clear(),
            Some(_) if opened.endpoints.is_empty() => {}
            Some(name) => {
                opened.endpoints.insert(name.clone());
            }
        },
        None => {
            let endpoints = request.endpoint.iter().cloned().collect();
            unit.ports.push(OpenedPorts { range: request.range, endpoints });
        }
    }
    Ok(())
}

fn close(
    tx: &Transaction<'_>,
    unit: &mut Unit,
    endpoints: &BTreeSet<EndpointName>,
    request: &PortRequest,
) -> Result<(), Refusal> {
    check_conflicts(tx, unit, request.range, "close")?;
    let Some(opened) = unit.ports.iter_mut().find(|opened| opened.range == request.range) else {
        return Ok(());
    };
    let still_open = match &request.endpoint {
        None => false,
        Some(name) => {
            // Open for all, closed for one: open for each of the others.
            if opened.endpoints.is_empty() {
                opened.endpoints = endpoints.clone();
            }
            opened.endpoints.remove(name);
            !opened.endpoints.is_empty()
        }
    };
    if !still_open {
        unit.ports.retain(|opened| opened.range != request.range);
    }
    Ok(())
}

/// The same range of the same unit is no conflict; any overlap with another unit's is.
fn check_conflicts(tx: &Transaction<'_>, unit: &Unit, range: PortRange, verb: &str) -> Result<(), Refusal> {
    let own = unit.ports.iter().find(|opened| opened.range != range && opened.range.overlaps(&range));
    if let Some(own) = own {
        return Err(conflict(verb, &unit.name, range, &unit.name, own.range));
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
