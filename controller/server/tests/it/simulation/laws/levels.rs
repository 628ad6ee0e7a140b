//! H9: the level of what is stored is at most what each controller's program knows.

use std::collections::BTreeMap;

use periapt_host_api::{Level, Revision};

use crate::simulation::witness::Event;

/// Checks each entry against the programs that the hosts have at that moment, also of controllers that do not run.
///
/// # Errors
/// H9
pub(super) fn are_known(events: &[Event], level: impl Fn(Revision) -> Level) -> Result<(), String> {
    let mut programs: BTreeMap<&str, Level> = BTreeMap::new();
    for event in events {
        match event {
            Event::Program { host, level } => drop(programs.insert(host, *level)),
            Event::Appended { position, .. } => {
                let level = level(*position);
                if let Some((host, known)) = programs.iter().find(|(_, known)| **known < level) {
                    return Err(format!(
                        "H9: the entry at {position} has level {level}, and the program of {host} knows {known}"
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use periapt_log::Term;

    use super::*;

    #[test]
    fn an_entry_of_a_level_that_a_program_does_not_know_is_found() {
        let program = |host, level| Event::Program { host, level: Level(level) };
        let appended =
            |position| Event::Appended { host: "one", term: Term(1), position: Revision(position) };
        let level = |position: Revision| if position > Revision(3) { Level(2) } else { Level::FIRST };
        let begun = [program("one", 1), program("two", 2), appended(3)];
        are_known(&begun, level).unwrap();
        are_known(&[&begun[..], &[program("one", 2), appended(4)]].concat(), level).unwrap();
        let found = are_known(&[&begun[..], &[appended(4), program("one", 2)]].concat(), level).unwrap_err();
        assert!(found.starts_with("H9: "), "{found}");
    }
}
