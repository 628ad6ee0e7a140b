//! The note `DATA/program`: which program a service runs, and which one it tries.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use periapt_host_api::{Digest, program::FailedProgram};
use serde::{Deserialize, Serialize};

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
    /// The last program that was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<FailedProgram>,
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
    /// True once the program was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) came_up: bool,
}

impl Note {
    /// Creates the note of a service that runs the installed program. It takes targets after this number.
    pub(crate) fn of(installed: Digest, number: u64) -> Self {
        Self { installed, current: installed, number, previous: None, trial: None, failed: None }
    }

    /// Makes the tried program the current one.
    pub(crate) fn adopt(&mut self) {
        if let Some(trial) = self.trial.take() {
            self.previous = Some(std::mem::replace(&mut self.current, trial.digest));
            self.failed = None;
        }
    }

    /// Ends the trial with a failure.
    pub(crate) fn fail(&mut self, reason: &str) {
        if let Some(Trial { digest, number, .. }) = self.trial.take() {
            self.failed = Some(FailedProgram { digest, number, reason: reason.to_owned() });
        }
    }
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

    #[test]
    fn a_note_is_read_back_and_a_damaged_one_is_none() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(read(data.path()).unwrap(), None);
        let trial = Trial { digest: Digest::of(b"b"), number: 4, by: Some(7), came_up: true };
        let note = Note { trial: Some(trial), ..Note::of(Digest::of(b"a"), 4) };
        write(data.path(), Some(&note)).unwrap();
        assert_eq!(read(data.path()).unwrap(), Some(note));
        fs::write(path(data.path()), "{\"installed\":").unwrap();
        assert_eq!(read(data.path()).unwrap(), None);
        write(data.path(), None).unwrap();
        write(data.path(), None).unwrap();
        assert!(!path(data.path()).exists());
    }
}
