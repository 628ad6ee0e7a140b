//! `componentize-py`, which holds the CPython of all Python charms. pip installs one pinned version in a cache, at once
//! or not at all.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{PythonError, python::Python};

/// The name and version. A new version changes the CPython of all Python charms.
pub(crate) const COMPONENTIZE: &str = "componentize-py==0.25.1";

/// The requirement for pip with the digests of the wheels, so that pip refuses any other file: Linux (x86-64 and 64-bit
/// ARM), macOS (ARM and x86-64) and Windows.
const REQUIREMENT: &str = "componentize-py==0.25.1 \
    --hash=sha256:8623cd8cab8453cb0cd8bf03f3c7103420d06f2f3d360186a280a70a1ca5e89f \
    --hash=sha256:7b6a87c520358166843af0daa86d2312d7af4cbcbbf1e598951085cf7f2991ca \
    --hash=sha256:a556991534cc496207a9d2ca733c4b0f17ed38ef56a8d6b5f1847fdf1225dd1b \
    --hash=sha256:65fbc4a94df1de8acf7da50a1f5ed1711230188844e53e6332d99029be4e0afa \
    --hash=sha256:c7fd552fb0849858b0c1e8981543ed5dff4b0cc1597a8ea0bc26a495786dc0c6\n";

/// The cache of tools.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    cache: PathBuf,
}

impl Tools {
    pub(crate) fn new(cache: &Path) -> Self {
        Self { cache: cache.join("python") }
    }

    /// Returns the directory of `componentize-py` if it is in the cache.
    pub(crate) fn present(&self) -> Option<PathBuf> {
        Some(self.place()).filter(|place| place.is_dir())
    }

    /// Fetches `componentize-py` unless it is in the cache. The directory gets its name when it is complete.
    pub(crate) fn fetch(&self, python: &Python) -> Result<PathBuf, PythonError> {
        let place = self.place();
        let failed = |source| PythonError::Io { path: self.cache.clone(), source };
        fs::create_dir_all(&self.cache).map_err(failed)?;
        let lock = File::create(self.cache.join("lock")).map_err(failed)?;
        // The lock ends when it is dropped. A second process waits, and finds the fetched tool.
        lock.lock().map_err(failed)?;
        if place.is_dir() {
            return Ok(place);
        }
        let beside = tempfile::Builder::new().prefix("fetching-").tempdir_in(&self.cache).map_err(failed)?;
        let mut requirement = tempfile::NamedTempFile::new().map_err(failed)?;
        requirement.write_all(REQUIREMENT.as_bytes()).map_err(failed)?;
        let fetched = python.output(
            python
                .module("pip")
                .args(["install", "--quiet", "--no-input", "--disable-pip-version-check"])
                .args(["--no-compile", "--no-deps", "--only-binary=:all:", "--require-hashes", "--target"])
                .arg(beside.path())
                .arg("-r")
                .arg(requirement.path()),
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
        // The error of moving describes the failure.
        let _ = fs::remove_dir_all(from);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_is_the_version_that_is_named_by_its_digests() {
        let mut words = REQUIREMENT.split_whitespace();
        assert_eq!(words.next(), Some(COMPONENTIZE));
        for word in words {
            let digest = word.strip_prefix("--hash=sha256:").unwrap();
            assert!(digest.len() == 64 && digest.chars().all(|digit| digit.is_ascii_hexdigit()), "{digest}");
        }
    }
}
