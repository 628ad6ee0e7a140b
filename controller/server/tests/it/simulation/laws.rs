//! The laws of several controllers, of a history and the log that it left. The log is the witness.

mod answers;
mod blobs;
mod levels;
#[cfg(test)]
mod tests;
mod trimming;

use std::collections::BTreeMap;

use periapt_controller::LogBounds;
use periapt_store::LoadedState;

use super::{
    fold::{Fold, State},
    sessions::{Ended, Operation, Outcome},
    witness::Event,
};

/// Checks the laws that are judged by events.
///
/// # Errors
/// H2, H7, H8, H9
pub(super) fn of_events(events: &[Event], fold: &Fold, bounds: LogBounds) -> Result<(), String> {
    answers::rest_on_the_log(events)?;
    trimming::leaves_what_is_durable(events, |at| fold.level(at), bounds.most)?;
    levels::are_known(events, |at| fold.level(at))?;
    blobs::exist(events, |at| fold.registered(at))
}

/// Checks that all controllers have the fold of the log on their disks.
///
/// # Errors
/// H1
pub(super) fn same_everywhere(fold: &Fold, disks: &[LoadedState]) -> Result<(), String> {
    for (number, disk) in disks.iter().enumerate() {
        let same = disk.entities.iter().map(|(key, value)| (key, value)).eq(&fold.entities);
        if !same || disk.note.as_deref() != Some(&*fold.head.encode()) {
            return Err(format!(
                "H1: controller {number} does not have the fold of the log at {}",
                disk.revision
            ));
        }
    }
    Ok(())
}

/// Checks that what was acknowledged was carried out once, and what was told to have had no effect was not.
///
/// # Errors
/// H4
pub(super) fn once(fold: &Fold, history: &[Ended]) -> Result<(), String> {
    // Each name and each register, with the operations that were acknowledged and those of which nothing is known.
    let mut names: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut registers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ended in history {
        let told = match &ended.operation {
            Operation::Add(name) => names.entry(name).or_default(),
            Operation::Write(register, _) => registers.entry(register).or_default(),
            Operation::Read(_) | Operation::List => continue,
        };
        match ended.outcome {
            Outcome::Done => told.0 += 1,
            Outcome::Unknown => told.1 += 1,
            _ => {}
        }
    }
    for (what, done, (told, unknown)) in
        names.iter().map(|(name, told)| (*name, fold.added.get(*name).map_or(0, Vec::len), *told)).chain(
            registers.iter().map(|(name, told)| (*name, fold.writes.get(*name).copied().unwrap_or(0), *told)),
        )
    {
        if !(told..=told + unknown).contains(&done) {
            return Err(format!(
                "H4: of {what}, {told} operations were acknowledged and {unknown} may have been carried out, \
                 the log has {done}"
            ));
        }
    }
    match fold.added.iter().find(|(_, positions)| positions.len() > 1) {
        Some((name, positions)) => Err(format!("H4: model {name} was added at {positions:?}")),
        None => Ok(()),
    }
}

/// Checks that each answer to a read is the state at a position of the log, and that no client is shown less than it saw
/// or was answered before.
///
/// # Errors
/// H1, H5
pub(super) fn never_less(fold: &Fold, history: &[Ended]) -> Result<(), String> {
    let mut floors: BTreeMap<usize, usize> = BTreeMap::new();
    for Ended { client, operation, outcome, .. } in history {
        let floor = floors.entry(*client).or_default();
        let shows = |state: &State| match (operation, outcome) {
            (Operation::Read(register), Outcome::Value(value)) => state.models.get(*register) == Some(value),
            (Operation::List, Outcome::Names(names)) => state.models.keys().eq(names),
            (Operation::Add(name), Outcome::Done | Outcome::Exists) => state.models.contains_key(name),
            (Operation::Write(register, value), Outcome::Done) => state.models.get(*register) == Some(value),
            _ => true,
        };
        let at =
            |from: usize| (from..fold.states.len()).find(|position| shows(fold.states[*position].as_ref()));
        match (at(*floor), operation) {
            (Some(position), _) => *floor = position,
            // The same batch may have written it again; then nobody sees this value.
            (None, Operation::Write(..)) => {}
            (None, _) => {
                let law = if at(0).is_some() {
                    "H5: older than position"
                } else {
                    "H1: at no position of the log;"
                };
                return Err(format!("{law} {floor}, client {client}: {operation:?} {outcome:?}"));
            }
        }
    }
    Ok(())
}
