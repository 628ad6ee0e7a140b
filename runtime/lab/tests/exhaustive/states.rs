//! Invariants of every state.

use std::time::Duration;

use periapt_host_api::{
    command::{Command, Force},
    status::{Life, UnitStatus},
    storage::UnitStorage,
};
use periapt_lab::Lab;

use super::planted_defects::PlantedDefect;

/// The wait of forced removals, for agents, in seconds.
const MAX_WAIT: u32 = 60;

/// Returns true if no removal is in progress.
pub(super) fn nothing_is_dying(lab: &Lab) -> bool {
    let state = lab.state().unwrap();
    let alive = |life: Life| life == Life::Alive;
    state.applications().all(|application| alive(application.life))
        && state.units().all(|unit| alive(unit.life))
        && state.relations().all(|relation| alive(relation.life))
        && state.storages().all(|storage| alive(storage.life()))
}

/// Checks a state, and returns its fault.
pub(super) fn check(lab: &Lab, plant: PlantedDefect) -> Result<(), String> {
    the_dying_say_what_they_wait_for(lab, plant)?;
    force_ends_it(lab.clone(), plant)
}

fn the_dying_say_what_they_wait_for(lab: &Lab, plant: PlantedDefect) -> Result<(), String> {
    let mut status = lab.status().map_err(|error| error.to_string())?;
    plant.distort(&mut status);
    let mut silent = Vec::new();
    let mut unit = |name: &str, unit: &UnitStatus| {
        if !unit.life.is_empty() && unit.waits_for.is_empty() {
            silent.push(format!("unit {name}"));
        }
    };
    for application in status.applications.values() {
        for (name, found) in &application.units {
            unit(name, found);
            for (name, found) in &found.subordinates {
                unit(name, found);
            }
        }
    }
    for (name, application) in &status.applications {
        if !application.life.is_empty() && application.waits_for.is_empty() {
            silent.push(format!("application {name}"));
        }
    }
    let dying = lab.state().unwrap().relations().filter(|relation| relation.life == Life::Dying);
    for relation in dying {
        let shown = status.relations.iter().find(|shown| shown.id == relation.id.0);
        if shown.is_none_or(|shown| shown.waits_for.is_empty()) {
            silent.push(format!("relation {}", relation.id));
        }
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(format!("dying, and silent about what they wait for: {}", silent.join(", "))),
    }
}

/// Checks that forced removal ends while no agent does or reports anything.
fn force_ends_it(mut lab: Lab, plant: PlantedDefect) -> Result<(), String> {
    let fail = |error: periapt_lab::LabError| error.to_string();
    let applications: Vec<_> = lab.state().unwrap().applications().map(|it| it.name.clone()).collect();
    for application in applications {
        let force = Some(Force { max_wait: MAX_WAIT });
        let remove = Command::RemoveApplication { application, force, storage: UnitStorage::Detach };
        // The end of one application may have been the end of another.
        let _ = lab.command(&remove);
    }
    lab.work().map_err(fail)?;
    if plant != PlantedDefect::StoppedClock {
        lab.pass(Duration::from_secs(u64::from(MAX_WAIT) + 1));
    }
    lab.work().map_err(fail)?;
    let state = lab.state().unwrap();
    let left: Vec<String> = state
        .applications()
        .map(|it| format!("application {}", it.name))
        .chain(state.units().map(|it| format!("unit {}", it.name)))
        .chain(state.relations().map(|it| format!("relation {}", it.id)))
        .chain(state.machines().map(|it| format!("machine {}", it.id)))
        .chain(state.work().map(|it| format!("work {:?}", it.work)))
        .collect();
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("left after forced removal: {}", left.join(", "))),
    }
}
