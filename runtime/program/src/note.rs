//! The note `DATA/program`: which program a service runs, and which one it tries.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use periapt_host_api::{Digest, Timestamp, program::FailedProgram};
use serde::{Deserialize, Serialize};

use crate::process::ProcessLife;

/// The time for which the program before is kept, so that the service can go back to it.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The number of ends by itself, within [`ENDS_WITHIN`], after which the service goes back from a program. A supervisor
/// such as systemd gives up after five starts within ten seconds.
const ENDS: usize = 3;

/// The time within which ends count.
const ENDS_WITHIN: Duration = Duration::from_secs(30 * 60);

/// The number of trials of a program that the machine's end cuts short, after which the program has failed: it may be what
/// ends the machine.
const MACHINE_ENDS: u32 = 3;

/// The note. A service without one runs the installed program, and was given no target yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Note {
    /// The installed program that the service replaced. If another one is installed, that one wins.
    pub(crate) installed: Digest,
    /// The program that the service runs; the installed one, or one of those beside the note.
    pub(crate) current: Digest,
    /// The number of the last target that the service has taken, or not taken.
    #[serde(default)]
    pub(crate) number: u64,
    /// The program before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<Digest>,
    /// The program that is to be tried, or is being tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trial: Option<Trial>,
    /// The last program that was not taken, or from which the service went back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<FailedProgram>,
    /// The target whose trial was put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) put_off: Option<PutOff>,
    /// The time after the current program was taken, in which the service may go back to the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) probation: Option<Probation>,
}

/// A target whose trial was put off, because nobody answered the program that runs either, or because the machine ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PutOff {
    /// The program, which is kept.
    pub(crate) digest: Digest,
    /// The number of the target.
    pub(crate) number: u64,
    /// The number of trials that were put off.
    pub(crate) times: u32,
    /// The number of those that the machine's end has cut short.
    #[serde(default)]
    pub(crate) machine_ends: u32,
}

/// The time after a program was taken, in which the service may go back to the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Probation {
    /// The number of the program's target.
    pub(crate) number: u64,
    /// The time at which the program was taken.
    pub(crate) since: Timestamp,
    /// The process that runs the service; none after it has ended in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runs: Option<ProcessLife>,
    /// The times at which the service started after it had ended by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ends: Vec<Timestamp>,
}

/// The start of a process, as far as it tells how the one before has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    /// The process that starts.
    pub(crate) process: ProcessLife,
    /// The time.
    pub(crate) at: Timestamp,
    /// True if the process that ran the service before still runs.
    pub(crate) is_second: bool,
}

/// The trial of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Trial {
    /// The program.
    pub(crate) digest: Digest,
    /// The number of its target.
    pub(crate) number: u64,
    /// The process that tries it, once the trial has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<u32>,
    /// The id of the machine's start in which the trial has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
    /// True once the program was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) came_up: bool,
}

impl Note {
    /// Creates the note of a service that runs the installed program. It takes targets after this number.
    pub(crate) fn of(installed: Digest, number: u64) -> Self {
        Self {
            installed,
            current: installed,
            number,
            previous: None,
            trial: None,
            failed: None,
            put_off: None,
            probation: None,
        }
    }

    /// Makes the tried program the current one. With a start, the service may go back from it later.
    pub(crate) fn adopt(&mut self, start: Option<&Start>) {
        if let Some(trial) = self.trial.take() {
            self.previous = Some(std::mem::replace(&mut self.current, trial.digest));
            (self.failed, self.put_off) = (None, None);
            self.probation = start.map(|start| Probation {
                number: trial.number,
                since: start.at,
                runs: Some(start.process.clone()),
                ends: Vec::new(),
            });
        }
    }

    /// Ends the trial with a failure.
    pub(crate) fn fail(&mut self, reason: &str) {
        if let Some(Trial { digest, number, .. }) = self.trial.take() {
            self.failed = Some(FailedProgram { digest, number, reason: reason.to_owned() });
            self.put_off = None;
        }
    }

    /// Ends the trial so that the target is news again.
    pub(crate) fn put_off(&mut self) {
        if let Some(Trial { digest, number, .. }) = self.trial.take() {
            self.number = number.saturating_sub(1);
            let before = self.put_off.take().filter(|before| before.number == number);
            let (times, machine_ends) = before.map_or((0, 0), |before| (before.times, before.machine_ends));
            let times = times.saturating_add(1);
            self.put_off = Some(PutOff { digest, number, times, machine_ends });
        }
    }

    /// Ends a trial that the machine's end has cut short. The target is news again, unless that happened too often.
    pub(crate) fn put_off_by_machine(&mut self) {
        self.put_off();
        let Some(put_off) = &mut self.put_off else { return };
        put_off.machine_ends = put_off.machine_ends.saturating_add(1);
        if put_off.machine_ends >= MACHINE_ENDS {
            let (digest, number) = (put_off.digest, put_off.number);
            let reason = format!("the machine ended during {MACHINE_ENDS} trials of it");
            self.number = number;
            self.failed = Some(FailedProgram { digest, number, reason });
            self.put_off = None;
        }
    }

    /// Counts a start of the service, and goes back from a program that has ended by itself too often.
    pub(crate) fn count(&mut self, start: &Start) {
        let Some(probation) = self.probation.as_mut().filter(|_| !start.is_second) else { return };
        if passed(probation.since, start.at) > KEPT_FOR {
            (self.probation, self.previous) = (None, None);
            return;
        }
        let before = probation.runs.replace(start.process.clone());
        // A machine that ends takes its processes along. A process stays the same when it becomes another program.
        let ended = before.is_some_and(|before| before != start.process && before.boot == start.process.boot);
        if !ended {
            return;
        }
        probation.ends.push(start.at);
        probation.ends.retain(|end| passed(*end, start.at) < ENDS_WITHIN);
        if probation.ends.len() >= ENDS {
            self.go_back();
        }
    }

    /// Notes that a process goes on with the current program after a trial.
    pub(crate) fn go_on(&mut self, start: Option<&Start>) {
        if let (Some(probation), Some(start)) = (&mut self.probation, start) {
            probation.runs = Some(start.process.clone());
        }
    }

    /// Goes back to the program before.
    fn go_back(&mut self) {
        let Some(Probation { number, .. }) = self.probation.take() else { return };
        let before = self.previous.take().unwrap_or(self.installed);
        let digest = std::mem::replace(&mut self.current, before);
        let reason = format!("it ended by itself {ENDS} times within {} minutes", ENDS_WITHIN.as_secs() / 60);
        self.failed = Some(FailedProgram { digest, number, reason });
    }
}

/// Returns the time that has passed; none if the clock was set back.
fn passed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Returns the path of the note of a service.
fn path(data: &Path) -> PathBuf {
    data.join("program")
}

/// Reads the note. A damaged one counts as none: it must not keep the service from starting.
pub(crate) fn read(data: &Path) -> io::Result<Option<Note>> {
    let path = path(data);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    match serde_json::from_slice(&bytes) {
        Ok(note) => Ok(Some(note)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the note of the program is damaged, and is dropped");
            Ok(None)
        }
    }
}

/// Writes the note as a whole and onto the disk, or removes it.
pub(crate) fn write(data: &Path, note: Option<&Note>) -> io::Result<()> {
    let (path, unfinished) = (path(data), data.join("program.new"));
    let Some(note) = note else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&serde_json::to_vec(note)?)?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a process, this many seconds after the program was taken.
    fn start(id: u32, seconds: u64) -> Start {
        let process = ProcessLife { boot: "today".into(), id, started: u64::from(id) };
        let at = Timestamp::UNIX_EPOCH.checked_add(Duration::from_secs(1_000_000 + seconds)).unwrap();
        Start { process, at, is_second: false }
    }

    /// A note of a service that took its program for the target 4, in the process 1.
    fn taken() -> Note {
        let trial = Trial { digest: Digest::of(b"new"), number: 4, by: Some(1), boot: None, came_up: true };
        let mut note = Note { trial: Some(trial), ..Note::of(Digest::of(b"installed"), 4) };
        note.adopt(Some(&start(1, 0)));
        note
    }

    #[test]
    fn a_program_that_ends_by_itself_three_times_is_gone_back_from() {
        let mut note = taken();
        // The installed program starts first, and becomes the other one.
        for (id, seconds) in [(1, 0), (2, 3), (2, 3), (3, 6), (3, 6)] {
            note.count(&start(id, seconds));
        }
        assert_eq!((note.current, &note.failed), (Digest::of(b"new"), &None), "twice is not enough");
        note.count(&start(4, 9));
        assert_eq!((note.current, note.number), (Digest::of(b"installed"), 4));
        let failed = note.failed.unwrap();
        assert_eq!((failed.digest, failed.number), (Digest::of(b"new"), 4));
        assert_eq!(failed.reason, "it ended by itself 3 times within 30 minutes");
        assert_eq!((note.previous, note.probation), (None, None));
    }

    #[test]
    fn what_was_no_end_by_itself_does_not_count() {
        let after = |change: &dyn Fn(u32, &mut Note, &mut Start)| {
            let mut note = taken();
            for id in 2..12 {
                let mut next = start(id, u64::from(id));
                change(id, &mut note, &mut next);
                note.count(&next);
            }
            note.failed.is_some()
        };
        assert!(after(&|_, _, _| {}), "each of them counts otherwise");
        let ended_in_order =
            |_: u32, note: &mut Note, _: &mut Start| note.probation.as_mut().unwrap().runs = None;
        assert!(!after(&ended_in_order));
        assert!(!after(&|id, _, next| next.process.boot = id.to_string()), "the machine began anew");
        assert!(
            !after(&|_, _, next| next.is_second = true),
            "the service runs, and this one is a second one"
        );
        let seldom = |id: u32, _: &mut Note, next: &mut Start| *next = start(id, u64::from(id) * 1_200);
        assert!(!after(&seldom), "one in twenty minutes");
        assert!(after(&|_, _, next| next.at = Timestamp::UNIX_EPOCH), "the clock was set back");
    }

    #[test]
    fn ends_count_again_after_a_trial_of_the_next_program() {
        let next = Trial { digest: Digest::of(b"next"), number: 5, by: Some(1), boot: None, came_up: false };
        for put_off in [true, false] {
            let mut note = taken();
            // It has ended in order to try the next one.
            note.probation.as_mut().unwrap().runs = None;
            note.trial = Some(next.clone());
            if put_off {
                note.put_off()
            } else {
                note.fail("it hung")
            }
            note.go_on(Some(&start(1, 1)));
            for id in 2..5 {
                assert_eq!(note.current, Digest::of(b"new"));
                note.count(&start(id, u64::from(id)));
            }
            assert_eq!(note.current, Digest::of(b"installed"));
        }
    }

    #[test]
    fn the_program_before_is_kept_for_a_week() {
        let week = KEPT_FOR.as_secs();
        let mut note = taken();
        note.count(&start(2, week));
        assert_eq!(note.previous, Some(Digest::of(b"installed")));
        note.count(&start(3, week + 1));
        assert_eq!((note.previous, &note.probation), (None, &None));
        note.count(&start(4, week + 2));
        assert_eq!((note.current, note.failed), (Digest::of(b"new"), None));
    }

    #[test]
    fn a_trial_that_is_put_off_is_counted_and_its_target_is_news_again() {
        let trial = |number| {
            let digest = Digest::of(b"new");
            Some(Trial { digest, number, by: Some(1), boot: None, came_up: false })
        };
        let mut note = Note { trial: trial(4), ..Note::of(Digest::of(b"installed"), 4) };
        for times in 1..3 {
            note.put_off();
            assert_eq!((note.number, &note.trial, &note.failed), (3, &None, &None));
            assert_eq!(
                note.put_off,
                Some(PutOff { digest: Digest::of(b"new"), number: 4, times, machine_ends: 0 })
            );
            (note.number, note.trial) = (4, trial(4));
        }
        (note.number, note.trial) = (5, trial(5));
        note.put_off();
        let times = note.put_off.as_ref().map(|put_off| (put_off.number, put_off.times));
        assert_eq!(times, Some((5, 1)), "another target");
        note.trial = trial(5);
        note.adopt(None);
        assert_eq!((note.put_off, note.probation), (None, None));
    }

    #[test]
    fn a_note_is_read_back_and_a_damaged_one_is_none() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(read(data.path()).unwrap(), None);
        let boot = Some("today".to_owned());
        let trial = Trial { digest: Digest::of(b"b"), number: 4, by: Some(7), boot, came_up: true };
        let put_off = Some(PutOff { digest: Digest::of(b"b"), number: 4, times: 2, machine_ends: 1 });
        let note = Note { trial: Some(trial), put_off, ..taken() };
        write(data.path(), Some(&note)).unwrap();
        assert_eq!(read(data.path()).unwrap(), Some(note));
        fs::write(path(data.path()), "{\"installed\":").unwrap();
        assert_eq!(read(data.path()).unwrap(), None);
        write(data.path(), None).unwrap();
        write(data.path(), None).unwrap();
        assert!(!path(data.path()).exists());
    }
}
