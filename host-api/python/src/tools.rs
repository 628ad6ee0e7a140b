//! `componentize-py`, which holds the interpreter that charms get: one exact version, fetched through pip into a cache of
//! its own, whole or not at all.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{PythonError, python::Python};

/// Name and version. Its CPython is the one that all Python charms run on, so a change of it is a change of theirs.
pub(crate) const COMPONENTIZE: &str = "componentize-py==0.25.1";

/// Where tools are kept.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    cache: PathBuf,
}

impl Tools {
    pub(crate) fn new(cache: &Path) -> Self {
        Self { cache: cache.join("python") }
    }

    /// Where `componentize-py` is, if it is there.
    pub(crate) fn present(&self) -> Option<PathBuf> {
        Some(self.place()).filter(|place| place.is_dir())
    }

    /// Fetches it, unless somebody else just did. It appears when it is complete.
    pub(crate) fn fetch(&self, python: &Python) -> Result<PathBuf, PythonError> {
        let place = self.place();
        let failed = |source| PythonError::Io { path: self.cache.clone(), source };
        fs::create_dir_all(&self.cache).map_err(failed)?;
        let lock = File::create(self.cache.join("lock")).map_err(failed)?;
        // Until it is dropped: whoever comes second waits, and finds what the first has fetched.
        lock.lock().map_err(failed)?;
        if place.is_dir() {
            return Ok(place);
        }
        let beside = tempfile::Builder::new().prefix("fetching-").tempdir_in(&self.cache).map_err(failed)?;
        let fetched = python.output(
            python
                .command()
                .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
                .args(["--no-compile", "--no-deps", "--only-binary=:all:", "--target"])
                .arg(beside.path())
                .arg(COMPONENTIZE),
        )?;
        if !fetched.status.success() {
            let reason = String::from_utf8_lossy(&fetched.stderr).trim().to_owned();
            return Err(PythonError::Tool { tool: COMPONENTIZE.to_owned(), reason });
        }
        publish(&beside.keep(), &place).map_err(failed)?;
        Ok(place)
    }

    fn place(&self) -> PathBuf {
        self.cache.join(COMPONENTIZE.replace("==", "-"))
    }
}

fn publish(from: &Path, to: &Path) -> io::Result<()> {
    let moved = fs::rename(from, to);
    if moved.is_err() {
        // The error of moving is the one to tell.
        let _ = fs::remove_dir_all(from);
    }
    moved
}
