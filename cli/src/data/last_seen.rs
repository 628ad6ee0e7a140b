//! The newest states that commands were shown, `seen.json`: for each of the client's controllers a store and a revision.
//!
//! Each command is a process of its own. The next one tells what the last one saw, so that another controller of the same
//! log does not show it less. A controller that is alone, or that the client reaches by its socket, needs no position.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    time::Duration,
};

use jiff::Timestamp;
use periapt_host_api::api::WatchPosition;
use serde::{Deserialize, Serialize};

use super::{ClientData, ControllerName, DataDir, file::lock};
use crate::error::{Explain as _, Result};

/// The time for which a position counts. Controllers refuse requests while their state is more than 5 seconds old, so a later
/// command needs no position. One that no controller reaches, because their log was put back, does no harm after it.
const COUNTS_FOR: Duration = Duration::from_secs(60);

/// The positions, by this client's names for controllers.
type SeenStates = BTreeMap<ControllerName, SeenState>;

/// The newest state that commands saw of one controller.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SeenState {
    position: WatchPosition,
    /// The time at which the command that saw it ended.
    at: Timestamp,
}

impl SeenState {
    /// Returns the position, if it still counts. After a change of the clock it does not.
    fn counting(&self, now: Timestamp) -> Option<WatchPosition> {
        (now.duration_since(self.at).unsigned_abs() < COUNTS_FOR).then_some(self.position)
    }
}

/// The newest states that commands were shown.
#[derive(Debug)]
pub(crate) struct LastSeen;

impl LastSeen {
    /// Returns the newest position that a command saw of a controller within the last minute. A file that is absent or
    /// damaged has none.
    pub(crate) fn of(directory: &DataDir, controller: &ControllerName) -> Option<WatchPosition> {
        read(directory).get(controller)?.counting(Timestamp::now())
    }

    /// Keeps the position that a command has seen, unless a process has kept a newer one meanwhile. The command began with
    /// another position, or with none.
    ///
    /// A position of the same store never goes back. One of another store takes its place: the controllers were restored
    /// from a backup. Of a controller that the client does not know any more, nothing is kept.
    pub(crate) fn keep(
        directory: &DataDir,
        controller: &ControllerName,
        began_with: Option<WatchPosition>,
        seen: WatchPosition,
    ) -> Result<()> {
        let lock = lock(directory)?;
        let (mut known, now) = (read(directory), Timestamp::now());
        let is_newer = match known.get(controller).and_then(|kept| kept.counting(now)) {
            None => true,
            Some(kept) if kept.store == seen.store => kept.revision < seen.revision,
            // If the store is not the one that the command began with, another process has seen the change of stores, too.
            Some(kept) => began_with.is_some_and(|began_with| began_with.store == kept.store),
        };
        if is_newer && ClientData::read(directory)?.controllers.contains_key(controller) {
            known.insert(controller.clone(), SeenState { position: seen, at: now });
            write(directory, &known)?;
        }
        drop(lock);
        Ok(())
    }

    /// Forgets the position of a controller, if there is one. One that stays counts for a minute, and for its store alone.
    pub(crate) fn forget(directory: &DataDir, controller: &ControllerName) {
        if let Err(error) = Self::remove(directory, controller) {
            tracing::debug!(%error, "the newest state that commands saw is not forgotten");
        }
    }

    fn remove(directory: &DataDir, controller: &ControllerName) -> Result<()> {
        let lock = lock(directory)?;
        let mut known = read(directory);
        if known.remove(controller).is_some() {
            write(directory, &known)?;
        }
        drop(lock);
        Ok(())
    }
}

/// Reads the file. A crash of the machine may damage it, as it is written without a sync.
fn read(directory: &DataDir) -> SeenStates {
    let text = fs::read(directory.seen_file()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Replaces the file. There is no sync: commands that only read write it, too, and after a crash of the machine the position
/// that is lost counts no more.
fn write(directory: &DataDir, known: &SeenStates) -> Result<()> {
    let path = directory.seen_file();
    let partial = path.with_extension("json.new");
    let mut text = serde_json::to_string_pretty(known).explain(|| format!("{}", path.display()))?;
    text.push('\n');
    let write = || -> std::io::Result<()> {
        // One that another user's command has left cannot be opened.
        let _ = fs::remove_file(&partial);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&partial, &path)
    };
    let written = write();
    if written.is_err() {
        // The file may not exist; the error below is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written.explain(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::data::ControllerEntry;

    fn position(text: &str) -> Option<WatchPosition> {
        let (store, revision) = text.split_once('/').unwrap();
        Some(format!("00000000-0000-0000-0000-00000000000{store}/{revision}").parse().unwrap())
    }

    /// Returns a directory whose client knows a controller, and the controller's name.
    fn known(temporary: &tempfile::TempDir) -> (DataDir, ControllerName) {
        let (directory, name) =
            (DataDir::at(&temporary.path().join("new")), "home".parse::<ControllerName>().unwrap());
        let entry = ControllerEntry {
            url: "https://a:1".into(),
            addresses: Vec::new(),
            ca_cert: None,
            uuid: Uuid::nil(),
            current_model: None,
            local: None,
        };
        ClientData::update(&directory, |data| {
            data.controllers.insert(name.clone(), entry);
            Ok(())
        })
        .unwrap();
        (directory, name)
    }

    #[test]
    fn a_position_never_goes_back_and_gives_way_to_one_of_another_store() {
        let temporary = tempfile::tempdir().unwrap();
        let (directory, name) = known(&temporary);
        let after = |began_with: &str, seen: &str| {
            let began_with = Some(began_with).filter(|text| !text.is_empty()).and_then(position);
            LastSeen::keep(&directory, &name, began_with, position(seen).unwrap()).unwrap();
            LastSeen::of(&directory, &name)
        };
        assert_eq!(LastSeen::of(&directory, &name), None, "there is no file yet");
        assert_eq!(after("", "1/7"), position("1/7"));
        assert_eq!(after("1/4", "1/5"), position("1/7"), "a slower process has seen less");
        assert_eq!(after("1/7", "1/9"), position("1/9"));
        // The controllers were restored: another store, whose revisions may be lower.
        assert_eq!(after("1/9", "2/3"), position("2/3"));
        assert_eq!(
            after("1/9", "1/10"),
            position("2/3"),
            "a process that was there before has seen the old store"
        );
        assert_eq!(after("", "1/10"), position("2/3"), "so has one that began before there was a position");
        assert_eq!(after("2/3", "2/4"), position("2/4"));
    }

    #[test]
    fn a_position_counts_for_a_minute_and_gives_way_to_an_older_one_then() {
        let temporary = tempfile::tempdir().unwrap();
        let (directory, name) = known(&temporary);
        let (now, far) = (Timestamp::now(), position("1/99").unwrap());
        for (seconds, counts) in [(-30, true), (-61, false), (30, true), (3_600, false)] {
            let at = now + jiff::SignedDuration::from_secs(seconds);
            write(&directory, &BTreeMap::from([(name.clone(), SeenState { position: far, at })])).unwrap();
            assert_eq!(LastSeen::of(&directory, &name), counts.then_some(far), "{seconds}");
            LastSeen::keep(&directory, &name, None, position("1/7").unwrap()).unwrap();
            let kept = if counts { "1/99" } else { "1/7" };
            assert_eq!(LastSeen::of(&directory, &name), position(kept), "{seconds}");
        }
    }

    #[test]
    fn a_damaged_file_has_no_position_and_is_replaced() {
        let temporary = tempfile::tempdir().unwrap();
        let (directory, name) = known(&temporary);
        for damaged in ["", "{", "[]", r#"{"home": 7}"#, r#"{"home": {"position": "x"}}"#, "\u{0}"] {
            fs::write(directory.seen_file(), damaged).unwrap();
            assert_eq!(LastSeen::of(&directory, &name), None, "{damaged:?}");
            LastSeen::keep(&directory, &name, None, position("1/7").unwrap()).unwrap();
            assert_eq!(LastSeen::of(&directory, &name), position("1/7"), "{damaged:?}");
        }
    }

    #[test]
    fn positions_of_processes_at_once_end_with_the_newest() {
        let temporary = tempfile::tempdir().unwrap();
        let (directory, name) = known(&temporary);
        std::thread::scope(|scope| {
            for first in 1..=8 {
                let (directory, name) = (&directory, &name);
                scope.spawn(move || {
                    for revision in (first..=160).step_by(8) {
                        let seen = position(&format!("1/{revision}")).unwrap();
                        LastSeen::keep(directory, name, None, seen).unwrap();
                        assert!(LastSeen::of(directory, name).unwrap().revision >= seen.revision);
                    }
                });
            }
        });
        assert_eq!(LastSeen::of(&directory, &name), position("1/160"));
    }

    #[test]
    fn nothing_is_kept_of_a_controller_that_is_not_known_any_more() {
        let temporary = tempfile::tempdir().unwrap();
        let (directory, name) = known(&temporary);
        LastSeen::keep(&directory, &name, None, position("1/7").unwrap()).unwrap();
        let other: ControllerName = "other".parse().unwrap();
        LastSeen::keep(&directory, &other, None, position("1/7").unwrap()).unwrap();
        assert_eq!(LastSeen::of(&directory, &other), None);
        LastSeen::forget(&directory, &other);
        assert_eq!(LastSeen::of(&directory, &name), position("1/7"));
        LastSeen::forget(&directory, &name);
        assert_eq!(LastSeen::of(&directory, &name), None);
    }
}
