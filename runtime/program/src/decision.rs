//! The decision at the start of a service: with which program it goes on.

use periapt_host_api::Digest;

use crate::note::{Note, Trial};

/// The reason of a trial whose process ended before its end: with the machine, or by a signal.
const CUT_SHORT: &str = "the trial was cut short before the program was up";

/// The process that starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Starting {
    /// The digest of its program.
    pub(crate) program: Digest,
    /// Its id.
    pub(crate) id: u32,
    /// The id of its parent.
    pub(crate) parent: u32,
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
/// is gone.
pub(crate) fn decide(starting: Starting, note: Option<Note>) -> (Option<Note>, Next) {
    let Starting { program, id, parent } = starting;
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
            trial.by = Some(id);
            let next = Next::Try(trial.digest);
            return (Some(note), next);
        }
        Some(trial) if trial.by.is_none() => {}
        Some(trial) if trial.came_up => note.adopt(),
        Some(_) => note.fail(CUT_SHORT),
        None => {}
    }
    let next = if program == note.current { Next::Serve } else { Next::Become(note.current) };
    (Some(note), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests of programs: the installed one, two that replaced it, and one that is installed later.
    fn programs() -> [Digest; 4] {
        ["installed", "first", "second", "later"].map(|name| Digest::of(name.as_bytes()))
    }

    fn trial(digest: Digest, by: Option<u32>, came_up: bool) -> Option<Trial> {
        Some(Trial { digest, number: 5, by, came_up })
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
            let (after, next) = decide(Starting { program, id: 10, parent }, note);
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
}
