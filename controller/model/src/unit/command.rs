//! The commands that add, remove and resolve units.

use periapt_host_api::{
    ApplicationName, ErrorCode, EventId, Refusal, StorageId, UnitName,
    command::{Answer, Force, Placement, ResolveMode},
    status::Life,
    storage::UnitStorage,
};

use super::{life, new::new_unit};
use crate::{
    entity::{PendingEvents, SequenceKey, Unit, Work},
    storage::{
        self,
        takeover::{NewUnitPlacement, TakenOver},
    },
    transaction::Transaction,
};

/// The most units that one command creates. A typing error must not fill the controller.
pub(crate) const MAX_UNITS_AT_ONCE: u32 = 10_000;

/// The most units that one commit creates.
pub(crate) const UNITS_PER_STEP: u32 = 50;

/// The most entities of one commit for units and their storage. The rest is for the application and its relations.
const KEYS_FOR_UNITS: usize = 60;

pub(crate) fn add(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    count: u32,
    placement: &[Placement],
    attach_storage: &[StorageId],
) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    let application = tx.application(name)?;
    let cannot = |code, reason: &str| {
        let text = format!("cannot add unit to application {:?}: {reason}", name.as_str());
        Refusal::new(code, text).about(format!("application {name}"))
    };
    if application.life != Life::Alive {
        return Err(cannot(ErrorCode::NotAlive, "application is not alive"));
    }
    if application.subordinate {
        return Err(cannot(ErrorCode::BadRequest, "application is a subordinate"));
    }
    if count == 0 {
        return Err(cannot(ErrorCode::BadRequest, "must add at least one unit"));
    }
    check_request(tx, count, placement).map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    let meta = tx.charm_meta(&application)?;
    let arrival = TakenOver::check(tx, meta, &application.storage, attach_storage)
        .and_then(|taken| taken.place(tx, count, placement))
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    Ok(Answer::Units { units: create(tx, name, count, &arrival)? })
}

/// Refuses too many units or placements, and placements that do not exist.
pub(crate) fn check_request(
    tx: &Transaction<'_>,
    count: u32,
    placement: &[Placement],
) -> Result<(), Refusal> {
    if count > MAX_UNITS_AT_ONCE {
        let text = format!("{count} units at once are too many, at most {MAX_UNITS_AT_ONCE} are allowed");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    if placement.len() > count as usize {
        return Err(Refusal::bad_request(format!(
            "{} placements for {count} units: at most one each",
            placement.len()
        )));
    }
    for place in placement {
        match place {
            Placement::Machine(id) => match tx.state.machine(id) {
                None => return Err(Refusal::not_found(format!("machine {id} not found"))),
                Some(machine) if machine.life != Life::Alive => {
                    return Err(Refusal::not_alive(format!("machine {id} is not alive")));
                }
                Some(_) => {}
            },
            Placement::Agent(name) if tx.root.agent(name).is_none() => {
                return Err(Refusal::not_found(format!("agent {:?} not found", name.as_str())));
            }
            Placement::Agent(_) => {}
        }
    }
    Ok(())
}

/// Hands out numbers for `count` units, creates the first of them, and leaves the rest to the worker.
pub(crate) fn create(
    tx: &mut Transaction<'_>,
    application: &ApplicationName,
    count: u32,
    arrival: &NewUnitPlacement,
) -> Result<Vec<UnitName>, Refusal> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let first = tx.take_numbers(SequenceKey::Unit(application.clone()), count)?;
    let end = first.saturating_add(count);
    create_step(tx, application, first, end, arrival)?;
    Ok((first..end).map(|number| UnitName::new(application.clone(), number)).collect())
}

/// Creates units while the commit has room, and adds a work item for the rest.
pub(crate) fn create_step(
    tx: &mut Transaction<'_>,
    application: &ApplicationName,
    first: u32,
    end: u32,
    arrival: &NewUnitPlacement,
) -> Result<(), Refusal> {
    let found = tx.application(application)?;
    let meta = tx.charm_meta(&found)?;
    let storage = storage::life::of_new_unit(meta, &found.storage);
    let each = 1 + storage.iter().map(|wanted| wanted.count as usize).sum::<usize>();
    let per_step = u32::try_from(KEYS_FOR_UNITS / each).unwrap_or(1).min(UNITS_PER_STEP);
    let stop = end.min(first.saturating_add(per_step));
    let mut places = arrival.placement.iter();
    for number in first..stop {
        let name = UnitName::new(application.clone(), number);
        let unit = new_unit(tx, name.clone(), places.next().cloned());
        tx.put(unit);
        for wanted in &storage {
            let left = wanted.counting(arrival.left_of(wanted));
            if left.count > 0 {
                storage::life::make(tx, &name, &left)?;
            }
        }
        // Only a single new unit takes over storage.
        arrival.attach(tx, meta, &name);
    }
    if stop < end {
        let (application, placement) = (application.clone(), places.cloned().collect());
        tx.add_work(Work::CreateUnits { application, next: stop, end, placement }, None);
    }
    Ok(())
}

pub(crate) fn remove(
    tx: &mut Transaction<'_>,
    name: &UnitName,
    force: Option<Force>,
    storage: UnitStorage,
) -> Result<Answer, Refusal> {
    let unit = tx.unit(name)?;
    if unit.principal.is_some() && force.is_none() {
        let application = name.application();
        return Err(Refusal::bad_request(format!(
            "unit {name:?} is a subordinate, to remove use remove-relation; this will remove all units of \
             {:?}",
            application.as_str()
        ))
        .about(format!("unit {name}")));
    }
    life::destroy(tx, &unit, force, storage);
    Ok(match tx.state.unit(name) {
        None => Answer::Removal { gone: true, waits_for: Vec::new() },
        Some(unit) => Answer::Removal { gone: false, waits_for: life::waits_for(&tx.state, unit) },
    })
}

pub(crate) fn resolve(
    tx: &mut Transaction<'_>,
    name: &UnitName,
    mode: ResolveMode,
) -> Result<Answer, Refusal> {
    let mut unit = Unit::clone(&*tx.unit(name)?);
    let about = format!("unit {name}");
    if unit.life == Life::Dead {
        return Err(Refusal::not_alive(format!("unit {name:?} is dead")).about(about));
    }
    if !unit.is_in_error() {
        return Err(Refusal::conflict(format!("unit {name:?} is not in an error state")).about(about));
    }
    if unit.resolved.is_some() {
        let text = format!("cannot set resolved mode for unit {name:?}: already resolved");
        return Err(Refusal::conflict(text).about(about));
    }
    unit.resolved = Some(mode);
    tx.put(unit);
    Ok(Answer::Done)
}

/// Cancels a pending event of a unit.
pub(crate) fn cancel_event(
    tx: &mut Transaction<'_>,
    name: &UnitName,
    event: EventId,
) -> Result<Answer, Refusal> {
    tx.unit(name)?;
    let unknown = || {
        Refusal::not_found(format!("unit {name:?} waits for no event {event}")).about(format!("unit {name}"))
    };
    let mut pending = PendingEvents::clone(tx.state.events_of(name).ok_or_else(unknown)?);
    pending.events.remove(&event).ok_or_else(unknown)?;
    tx.put(pending);
    Ok(Answer::Done)
}
