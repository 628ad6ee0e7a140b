//! The life of a process, which keeps its identity when it becomes another program.

use std::fs;

use serde::{Deserialize, Serialize};

/// The file with the id of the machine's start.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The place of the start among the words of `/proc/PID/stat` that follow the name and the state.
const START: usize = 18;

/// The life of one process, from its start to its end. Process ids are used again, and containers use the same one
/// each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ProcessLife {
    /// The id of the machine's start.
    pub(crate) boot: String,
    /// The process id.
    pub(crate) id: u32,
    /// The time of the process's start, in ticks since that of the machine.
    pub(crate) started: u64,
}

impl ProcessLife {
    /// Returns the life of a process that runs; none if there is no such process, or it has ended.
    pub(crate) fn of(id: u32) -> Option<Self> {
        let boot = boot_id()?;
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        Some(Self { boot, id, started: start_of_running(&stat)? })
    }

    /// Returns true if the process runs.
    pub(crate) fn goes_on(&self) -> bool {
        Self::of(self.id).as_ref() == Some(self)
    }
}

/// Returns the id of the machine's start; none if the host does not tell it.
pub(crate) fn boot_id() -> Option<String> {
    Some(fs::read_to_string(BOOT_ID).ok()?.trim().to_owned())
}

/// Returns the start in the content of `/proc/PID/stat`, unless the process has ended and its parent has not noticed yet.
/// The name, in parentheses, may hold anything.
fn start_of_running(stat: &str) -> Option<u64> {
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    words.next().filter(|state| !["Z", "X"].contains(state))?;
    words.nth(START)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_life_ends_with_its_process() {
        let own = ProcessLife::of(std::process::id()).unwrap();
        assert!(own.goes_on() && own.started > 0);
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let life = ProcessLife::of(child.id()).unwrap();
        assert!(life.goes_on() && life.boot == own.boot);
        let another = ProcessLife { started: life.started + 1, ..life.clone() };
        assert!(!another.goes_on(), "an earlier process of this id");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!life.goes_on() && ProcessLife::of(life.id).as_ref() != Some(&life));
    }

    #[test]
    fn a_name_hides_no_start_and_a_process_that_has_ended_has_none() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_of_running(&format!("7 (a) b) S {rest}")), Some(4711));
        assert_eq!(start_of_running(&format!("7 (a) Z {rest}")), None);
        assert_eq!(start_of_running("7 (short) S 1"), None);
        assert_eq!(start_of_running(""), None);
    }
}
