//! The directory of a controller that is being bootstrapped, and its clean-up after a bootstrap that did not finish.
//!
//! A bootstrap holds `starting.json` (the mark) locked for as long as it runs, and writes each process into it that it
//! has started. The file is deleted once the client's file has the controller. So a directory with an unlocked mark was
//! left by a killed bootstrap: the next one ends the processes that still run, and takes its place.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{fs::FlockOperation, io::Errno};

use super::ControllerDir;
use crate::{
    error::{Explain as _, Failure, Result},
    input, local,
    process::ProcessId,
};

/// The longest wait for the processes of a killed bootstrap, which end by themselves.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The largest mark, in bytes.
const MAX_MARK: u64 = 64 << 10;

/// A bootstrap's claim to a controller's directory.
#[derive(Debug)]
pub(crate) struct Starting {
    directory: ControllerDir,
    /// The mark, locked until it is closed.
    mark: File,
    processes: Vec<ProcessId>,
    took_over: bool,
}

impl Starting {
    /// Makes the directory, or takes over that of a killed bootstrap. The caller holds the client's lock.
    pub(crate) fn claim(directory: ControllerDir) -> Result<Self> {
        let path = directory.path();
        let failed = || format!("cannot make {}", path.display());
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        if let Some(parent) = path.parent() {
            builder.create(parent).explain(failed)?;
        }
        builder.recursive(false);
        let took_over = match builder.create(path) {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let was_begun = clear(path)?;
                builder.create(path).explain(failed)?;
                was_begun
            }
            Err(error) => return Err(Failure::new(format!("{}: {error}", failed()))),
        };
        match marked(path) {
            Ok(mark) => Ok(Self { directory, mark, processes: Vec::new(), took_over }),
            Err(error) => {
                // The directory is still empty.
                let _ = fs::remove_dir_all(path);
                Err(Failure::new(format!("{}: {error}", failed())))
            }
        }
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &ControllerDir {
        &self.directory
    }

    /// Returns true if a killed bootstrap had left the directory.
    pub(crate) fn took_over(&self) -> bool {
        self.took_over
    }

    /// Records a started process.
    pub(crate) fn add(&mut self, process: &ProcessId) -> Result<()> {
        let failed = || format!("cannot write {}", mark_of(self.directory.path()).display());
        self.processes.push(process.clone());
        // One line for each process. A cut last line is of a process that has not been released from its guard.
        let mut line = serde_json::to_string(process).explain(failed)?;
        line.push('\n');
        self.mark.write_all(line.as_bytes()).and_then(|()| self.mark.sync_data()).explain(failed)
    }

    /// Releases the directory: the client's file has the controller, or its operator wants to inspect the directory.
    pub(crate) fn done(self) -> Result<()> {
        forget(&self.directory)
    }

    /// Ends the started processes, and removes the directory.
    pub(crate) async fn undo(self) -> Result<()> {
        self.end().await?;
        self.remove()
    }

    /// Ends the started processes.
    pub(crate) async fn end(&self) -> Result<()> {
        for process in self.processes.iter().rev() {
            local::end_process(process).await?;
        }
        Ok(())
    }

    /// Removes the directory of processes that have ended.
    pub(crate) fn remove(self) -> Result<()> {
        let path = self.directory.path();
        fs::remove_dir_all(path).explain(|| format!("cannot remove {}", path.display()))
    }
}

/// Removes the mark of a bootstrap that was killed when only that was left to do.
pub(crate) fn forget(directory: &ControllerDir) -> Result<()> {
    let mark = mark_of(directory.path());
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
    .explain(|| format!("cannot remove {}", mark.display()))
}

/// Makes the mark, and locks it.
fn marked(directory: &Path) -> std::io::Result<File> {
    let path = mark_of(directory);
    let mark = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    rustix::fs::flock(&mark, FlockOperation::NonBlockingLockExclusive)?;
    Ok(mark)
}

fn mark_of(directory: &Path) -> PathBuf {
    directory.join("starting.json")
}

/// Removes the directory of a killed bootstrap, or an empty one, and no other. Returns true if it was a bootstrap's.
fn clear(path: &Path) -> Result<bool> {
    let failed = || format!("cannot remove {}", path.display());
    let is_empty = fs::read_dir(path).explain(failed)?.next().is_none();
    if is_empty {
        return fs::remove_dir(path).map(|()| false).explain(failed);
    }
    let mark = match File::open(mark_of(path)) {
        Ok(mark) => mark,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(of_another(path)),
        Err(error) => return Err(Failure::new(format!("{}: {error}", failed()))),
    };
    match rustix::fs::flock(&mark, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(Failure::new("another bootstrap of this controller is running")
                .with_hint(format!("it makes {}", path.display())));
        }
        Err(error) => return Err(Failure::new(format!("{}: {error}", failed()))),
    }
    let text = String::from_utf8(input::bytes(&mark_of(path), MAX_MARK)?).unwrap_or_default();
    for process in text.lines().rev().filter_map(|line| serde_json::from_str::<ProcessId>(line).ok()) {
        process.end(ENDS_WITHIN)?;
    }
    fs::remove_dir_all(path).map(|()| true).explain(failed)
}

fn of_another(path: &Path) -> Failure {
    let text = format!("{} already exists, from a controller that this client does not know", path.display());
    Failure::new(text).with_hint("move it away, or bootstrap under another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(below: &tempfile::TempDir) -> ControllerDir {
        ControllerDir(below.path().join("controllers/local"))
    }

    #[test]
    fn a_directory_is_held_by_one_bootstrap_and_taken_over_when_that_has_gone() {
        let place = tempfile::tempdir().unwrap();
        let first = Starting::claim(directory(&place)).unwrap();
        let refused = Starting::claim(directory(&place)).unwrap_err().to_string();
        assert!(refused.starts_with("another bootstrap of this controller is running"), "{refused}");
        fs::write(directory(&place).path().join("controller.log"), "begun").unwrap();
        // A killed bootstrap undoes nothing, and the system releases its lock.
        drop(first);
        let second = Starting::claim(directory(&place)).unwrap();
        assert!(second.took_over());
        assert!(!directory(&place).path().join("controller.log").exists());
        second.done().unwrap();
        assert!(!Starting::claim(directory(&place)).unwrap().took_over(), "it is empty: nobody's");
    }

    #[test]
    fn what_a_killed_bootstrap_had_started_is_ended() {
        let place = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        let mut first = Starting::claim(directory(&place)).unwrap();
        first.add(&process).unwrap();
        first.mark.write_all(b"{\"pid\": 1, \"sta").unwrap();
        drop(first);
        drop(Starting::claim(directory(&place)).unwrap());
        assert!(!process.is_running());
        child.wait().unwrap();
    }

    #[test]
    fn what_no_bootstrap_left_stays() {
        let place = tempfile::tempdir().unwrap();
        let store = directory(&place).controller();
        fs::create_dir_all(&store).unwrap();
        let refused = Starting::claim(directory(&place)).unwrap_err().to_string();
        assert!(
            refused.contains("already exists, from a controller that this client does not know"),
            "{refused}"
        );
        assert!(store.exists());
    }
}
