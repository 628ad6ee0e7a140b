//! The decision at the start of a service: with which program it goes on.

use periapt_host_api::Digest;

use crate::note::{Note, Start, Trial};

/// The reason of a trial whose process ended before its end, as by a signal.
const CUT_SHORT: &str = "the trial was cut short before the program was up";

/// The process that starts.
#[derive(Debug, Clone)]
pub(crate) struct Starting {
    /// The digest of its program.
    pub(crate) program: Digest,
    /// Its id.
    pub(crate) id: u32,
    /// The id of its parent.
    pub(crate) parent: u32,
    /// The id of the machine's start; none if the host does not tell it.
    pub(crate) boot: Option<String>,
    /// Its start; none if the service stays with each program that was taken.
    pub(crate) start: Option<Start>,
}

/// The next step of a process that starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It serves.
    Serve,
    /// It serves on trial: its parent ends it.
    ServeOnTrial,
    /// It becomes this program.
    Become(Digest),
    /// It tries this program.
    Try(Digest),
}

/// Decides what a process that starts does next, and what the note says from then on.
///
/// A program that the note does not name was installed by an operator after the note was written. It wins: it stays
/// until the next target is set. A trial that has begun ends here unless this process is its child: the one that tried it
/// is gone. If it went with the machine, that says nothing of the program, which is tried again. A program that has ended
/// by itself too often is left.
pub(crate) fn decide(starting: Starting, note: Option<Note>) -> (Option<Note>, Next) {
    let Starting { program, id, parent, boot, start } = starting;
    let Some(mut note) = note else { return (None, Next::Serve) };
    if let Some(Trial { digest, by: Some(by), .. }) = &note.trial
        && (*digest, *by) == (program, parent)
    {
        return (Some(note), Next::ServeOnTrial);
    }
    let tried = note.trial.as_ref().map(|trial| trial.digest);
    if ![Some(note.installed), Some(note.current), tried].contains(&Some(program)) {
        return (Some(Note::of(program, note.number)), Next::Serve);
    }
    match &mut note.trial {
        Some(trial) if trial.by.is_none() && program == note.current => {
            (trial.by, trial.boot) = (Some(id), boot);
            let next = Next::Try(trial.digest);
            return (Some(note), next);
        }
        Some(trial) if trial.by.is_none() => {}
        Some(trial) if trial.came_up => note.adopt(start.as_ref()),
        Some(trial) if trial.boot.is_some() && boot.is_some() && trial.boot != boot => {
            note.put_off_by_machine();
        }
        Some(_) => note.fail(CUT_SHORT),
        None => {}
    }
    let before = note.current;
    if let Some(start) = &start {
        note.count(start);
    }
    // The installed program is not beside the note: the next start, which is its own, goes back to it.
    let is_left_for_installed = note.current != before && note.current == note.installed;
    let serves = program == note.current || is_left_for_installed;
    let next = if serves { Next::Serve } else { Next::Become(note.current) };
    (Some(note), next)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::Timestamp;

    use super::*;
    use crate::{note::Probation, process::ProcessLife};

    /// The digests of programs: the installed one, two that replaced it, and one that is installed later.
    fn programs() -> [Digest; 4] {
        ["installed", "first", "second", "later"].map(|name| Digest::of(name.as_bytes()))
    }

    fn trial(digest: Digest, by: Option<u32>, came_up: bool) -> Option<Trial> {
        Some(Trial { digest, number: 5, by, boot: by.map(|_| "today".to_owned()), came_up })
    }

    fn today() -> Option<String> {
        Some("today".to_owned())
    }

    #[test]
    fn each_start_has_one_next_step() {
        let [installed, first, second, later] = programs();
        let untouched = Note::of(installed, 5);
        let replaced = Note { current: first, previous: Some(installed), ..untouched.clone() };
        let with = |trial| Note { trial, ..replaced.clone() };
        let tried_first = Note { trial: trial(first, Some(10), false), ..untouched.clone() };
        // The process has the id 10, and the parent 1 unless the row says otherwise.
        let rows = [
            ("no note", None, later, 1, Next::Serve),
            ("the installed program is the current one", Some(untouched.clone()), installed, 1, Next::Serve),
            ("another one was installed", Some(untouched), later, 1, Next::Serve),
            ("the installed program was replaced", Some(replaced.clone()), installed, 1, Next::Become(first)),
            ("the current program runs", Some(replaced.clone()), first, 1, Next::Serve),
            ("another one was installed over it", Some(replaced.clone()), later, 1, Next::Serve),
            ("a trial is due", Some(with(trial(second, None, false))), first, 1, Next::Try(second)),
            (
                "it is due after the next start, too",
                Some(with(trial(second, None, false))),
                installed,
                1,
                Next::Become(first),
            ),
            (
                "the child is on trial",
                Some(with(trial(second, Some(9), false))),
                second,
                9,
                Next::ServeOnTrial,
            ),
            ("a trial was cut short", Some(with(trial(second, Some(9), false))), first, 1, Next::Serve),
            (
                "found by the installed program",
                Some(with(trial(second, Some(9), false))),
                installed,
                1,
                Next::Become(first),
            ),
            (
                "found by the tried program, which nobody tries",
                Some(with(trial(second, Some(9), false))),
                second,
                1,
                Next::Become(first),
            ),
            (
                "it was up when it was cut short",
                Some(with(trial(second, Some(9), true))),
                first,
                1,
                Next::Become(second),
            ),
            ("up, found by itself", Some(with(trial(second, Some(9), true))), second, 1, Next::Serve),
            (
                "another one was installed meanwhile",
                Some(with(trial(second, Some(9), true))),
                later,
                1,
                Next::Serve,
            ),
            ("the same process id after a restart", Some(tried_first), installed, 1, Next::Serve),
        ];
        for (what, note, program, parent, expected) in rows {
            let had = note.clone();
            let (after, next) =
                decide(Starting { program, id: 10, parent, boot: today(), start: None }, note);
            assert_eq!(next, expected, "{what}");
            if program == later {
                let expected = had.map(|had| Note::of(later, had.number));
                assert_eq!(after, expected, "{what}: the installed program wins");
                continue;
            }
            // A second start with what the first one noted comes to the same end.
            let (Some(had), Some(after)) = (had, after) else { panic!("{what}: the note is gone") };
            let begun = had.trial.as_ref().is_some_and(|trial| trial.by.is_some());
            if begun && next != Next::ServeOnTrial {
                assert_eq!(after.trial, None, "{what}");
                let failed = after.failed.as_ref().is_some_and(|failed| failed.number == 5);
                assert_eq!(failed, after.current != second, "{what}: it is taken, or it failed");
            }
            if let Next::Try(tried) = next {
                assert_eq!(after.trial, trial(tried, Some(10), false), "{what}: it is tried once");
            }
        }
    }

    #[test]
    fn a_trial_that_went_with_the_machine_is_repeated_twice() {
        let [installed, first, ..] = programs();
        let mut note = Note { trial: trial(first, None, false), ..Note::of(installed, 5) };
        let start = |note: Note, boot: &str| {
            let boot = Some(boot.to_owned());
            let (after, next) =
                decide(Starting { program: installed, id: 10, parent: 1, boot, start: None }, Some(note));
            (after.unwrap(), next)
        };
        for (began, times) in [("Monday", 1), ("Tuesday", 2)] {
            let (tries, next) = start(note, began);
            assert_eq!(next, Next::Try(first));
            let (after, next) = start(tries.clone(), "later");
            assert_eq!((next, &after.trial, &after.failed), (Next::Serve, &None, &None));
            assert_eq!(after.number, 4, "the target is news again");
            let put_off = after.put_off.clone().unwrap();
            assert_eq!((put_off.times, put_off.machine_ends), (times, times));
            assert_eq!(start(tries, began).0.failed.unwrap().reason, CUT_SHORT, "the machine runs on");
            note = Note { number: 5, trial: trial(first, None, false), ..after };
        }
        let (after, next) = start(start(note, "Wednesday").0, "later");
        assert_eq!((next, after.number, after.put_off), (Next::Serve, 5, None));
        assert_eq!(after.failed.unwrap().reason, "the machine ended during 3 trials of it");
        let unknown = Note { trial: trial(first, Some(9), false), ..Note::of(installed, 5) };
        let starting = Starting { program: installed, id: 10, parent: 1, boot: None, start: None };
        let (after, _) = decide(starting, Some(unknown));
        assert_eq!(after.unwrap().failed.unwrap().reason, CUT_SHORT, "the host does not tell");
    }

    /// The start of the process 10, and the note of a service whose program `current` has ended by itself twice, the
    /// last time as the process 9.
    fn ended_twice(current: Digest, previous: Digest) -> (Start, Note) {
        let process = |id| ProcessLife { boot: "today".into(), id, started: 1 };
        let start = Start { process: process(10), at: Timestamp::UNIX_EPOCH, is_second: false };
        let [installed, ..] = programs();
        let probation =
            Probation { number: 5, since: start.at, runs: Some(process(9)), ends: vec![start.at, start.at] };
        let note = Note { current, previous: Some(previous), ..Note::of(installed, 5) };
        (start, Note { probation: Some(probation), ..note })
    }

    #[test]
    fn the_third_end_leads_back_to_the_program_before() {
        let [installed, first, second, later] = programs();
        for (what, current, previous, program, expected) in [
            ("to the installed one", first, installed, installed, Next::Serve),
            ("to one of those beside the note", second, first, installed, Next::Become(first)),
            ("without the installed one's help", second, first, second, Next::Become(first)),
            ("the installed one serves from the next start on", first, installed, first, Next::Serve),
        ] {
            let (start, note) = ended_twice(current, previous);
            let starting = Starting { program, id: 10, parent: 1, boot: today(), start: Some(start) };
            let (after, next) = decide(starting, Some(note.clone()));
            let after = after.unwrap();
            assert_eq!((next, after.current), (expected, previous), "{what}");
            let failed = after.failed.map(|failed| (failed.digest, failed.number));
            assert_eq!(failed, Some((current, 5)), "{what}");
            let stays = Starting { program, id: 10, parent: 1, boot: today(), start: None };
            let (after, _) = decide(stays, Some(note));
            assert_eq!(after.unwrap().current, current, "{what}: a controller stays");
        }
        let (start, note) = ended_twice(first, installed);
        let starting = Starting { program: later, id: 10, parent: 1, boot: today(), start: Some(start) };
        let expected = (Some(Note::of(later, 5)), Next::Serve);
        assert_eq!(decide(starting, Some(note)), expected, "an installed one wins");
    }

    #[test]
    fn a_program_that_was_up_when_its_trial_was_cut_short_can_be_gone_back_from() {
        let [installed, first, ..] = programs();
        let (start, _) = ended_twice(first, installed);
        let note = Note { trial: trial(first, Some(9), true), ..Note::of(installed, 5) };
        let starting =
            Starting { program: installed, id: 10, parent: 1, boot: today(), start: Some(start.clone()) };
        let (after, next) = decide(starting, Some(note));
        assert_eq!(next, Next::Become(first));
        let probation = after.unwrap().probation.unwrap();
        assert_eq!((probation.runs, probation.ends), (Some(start.process), vec![]));
    }
}
