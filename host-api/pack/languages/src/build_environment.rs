//! The cache of fetched tools for building charms.
//!
//! ```text
//! tools/NAME-KEY/     one set of tools, complete; KEY is of all that went into it
//! tools/NAME.lock     held while one is made
//! ```

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::CharmBuildError;

/// The variable with the path of the cache; this repository's scripts use the same.
const CACHE_VARIABLE: &str = "PERIAPT_CACHE";

/// The cache of tools, the environment, and the receiver of progress messages.
pub struct BuildEnvironment {
    cache: PathBuf,
    variables: Box<Variables>,
    report: Box<dyn Fn(&str)>,
}

/// A function that reads a variable of the environment.
type Variables = dyn Fn(&str) -> Option<OsString>;

impl fmt::Debug for BuildEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildEnvironment").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// Returns the user's cache directory: `$PERIAPT_CACHE`, or else `periapt` in the user's cache directory. Returns
/// `None` if neither that nor the user's home is known. An empty variable counts as unset.
pub fn cache_directory(variables: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let directory = |name: &str| variables(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    directory(CACHE_VARIABLE)
        .or_else(|| directory("XDG_CACHE_HOME").map(|path| path.join("periapt")))
        .or_else(|| directory("HOME").map(|path| path.join(".cache/periapt")))
}

impl BuildEnvironment {
    /// Creates a build environment in the [`cache_directory`], if there is one. `variables` reads a variable of the
    /// environment. `report` gets the name of each step, such as `fetching esbuild`.
    pub fn new(
        variables: impl Fn(&str) -> Option<OsString> + 'static,
        report: impl Fn(&str) + 'static,
    ) -> Option<Self> {
        let cache = cache_directory(&variables)?;
        // Tools run in other directories.
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        Some(Self { cache, variables: Box::new(variables), report: Box::new(report) })
    }

    /// Returns the path of the cache.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns a variable of the environment, or `None` if it is empty.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// Returns the program that a variable names. A path is relative to this process's directory, and not to the
    /// directory in which the program runs, which may be untrusted.
    pub(crate) fn program(&self, variable: &str) -> Option<OsString> {
        let named = self.variable(variable)?;
        match named.as_encoded_bytes().contains(&b'/') {
            true => Some(std::path::absolute(&named).map_or(named, PathBuf::into_os_string)),
            false => Some(named),
        }
    }

    /// Reports the beginning of a step.
    pub(crate) fn report(&self, what: &str) {
        (self.report)(what);
    }

    /// Returns a set of tools by its name and inputs, and makes a missing one. `make` fills a directory, which gets
    /// its final name only on success. Concurrent callers wait on a lock, and then find the set.
    pub(crate) fn tools(
        &self,
        name: &str,
        parts: &[&str],
        make: impl FnOnce(&Path) -> Result<(), CharmBuildError>,
    ) -> Result<PathBuf, CharmBuildError> {
        let all = self.cache.join("tools");
        let place = all.join(format!("{name}-{}", key(parts)));
        if place.is_dir() {
            return Ok(place);
        }
        fs::create_dir_all(&all).map_err(CharmBuildError::files(&all))?;
        let lock = all.join(format!("{name}.lock"));
        let held = File::create(&lock).map_err(CharmBuildError::files(&lock))?;
        // The lock ends with the file's last handle, even if this process is killed.
        held.lock().map_err(CharmBuildError::files(&lock))?;
        if place.is_dir() {
            return Ok(place);
        }
        // An unfinished set is made anew. The lock excludes other makers.
        let unfinished = all.join(format!("{name}.unfinished"));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(CharmBuildError::files(&unfinished))?;
        }
        fs::create_dir(&unfinished).map_err(CharmBuildError::files(&unfinished))?;
        let made = make(&unfinished)
            .and_then(|()| fs::rename(&unfinished, &place).map_err(CharmBuildError::files(&place)));
        if made.is_err() {
            // The error describes the failure. The next attempt begins with the same removal.
            let _ = fs::remove_dir_all(&unfinished);
        }
        made.map(|()| place)
    }
}

/// Returns the key that distinguishes sets of tools of one name.
fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize()).chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc, thread};

    use super::*;

    fn environment(cache: &Path) -> BuildEnvironment {
        let cache = cache.as_os_str().to_owned();
        BuildEnvironment::new(move |name| (name == CACHE_VARIABLE).then(|| cache.clone()), |_| {}).unwrap()
    }

    fn failed() -> CharmBuildError {
        CharmBuildError::Failed { what: "fetching".into(), output: "no network".into() }
    }

    #[test]
    fn a_program_that_is_named_by_its_path_is_not_looked_for_where_it_is_run() {
        let here = std::env::current_dir().unwrap();
        for (named, expected) in [
            ("clang-19", "clang-19".into()),
            ("go/bin/go", here.join("go/bin/go")),
            ("/opt/go", "/opt/go".into()),
        ] {
            let environment = BuildEnvironment::new(move |_| Some(named.into()), |_| {}).unwrap();
            assert_eq!(environment.program("PERIAPT_GO").map(PathBuf::from), Some(expected));
        }
    }

    #[test]
    fn tools_are_there_whole_or_not_at_all_and_are_made_once() {
        let cache = tempfile::tempdir().unwrap();
        let environment = environment(cache.path());
        let broken = environment.tools("x", &["1"], |place| {
            fs::write(place.join("half"), "").unwrap();
            Err(failed())
        });
        assert!(broken.is_err());
        let left: Vec<_> = fs::read_dir(cache.path().join("tools")).unwrap().collect();
        assert_eq!(left.len(), 1, "the lock alone: {left:?}");

        let times = Cell::new(0);
        let make = |place: &Path| {
            times.set(times.get() + 1);
            fs::write(place.join("tool"), "").map_err(CharmBuildError::files(place))
        };
        let place = environment.tools("x", &["1"], make).unwrap();
        assert!(place.join("tool").exists() && !place.join("half").exists());
        assert_eq!(environment.tools("x", &["1"], make).unwrap(), place);
        assert_eq!(times.get(), 1);
        assert_ne!(environment.tools("x", &["2"], make).unwrap(), place, "other parts, other tools");
    }

    #[test]
    fn what_a_killed_process_left_is_made_anew() {
        let cache = tempfile::tempdir().unwrap();
        let unfinished = cache.path().join("tools/x.unfinished");
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("half"), "").unwrap();
        let environment = environment(cache.path());
        let place = environment.tools("x", &["1"], |_| Ok(())).unwrap();
        assert_eq!(fs::read_dir(place).unwrap().count(), 0);
    }

    #[test]
    fn of_two_at_once_one_makes_them_and_the_other_waits() {
        let cache = Arc::new(tempfile::tempdir().unwrap());
        let made = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let packers = (0..4).map(|_| {
            let (cache, made) = (Arc::clone(&cache), Arc::clone(&made));
            thread::spawn(move || {
                let environment = environment(cache.path());
                let count = |_: &Path| {
                    made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    Ok(())
                };
                environment.tools("x", &["1"], count).unwrap()
            })
        });
        let packers: Vec<_> = packers.collect();
        for packer in packers {
            assert!(packer.join().unwrap().is_dir());
        }
        assert_eq!(made.load(std::sync::atomic::Ordering::SeqCst), 1);
    }

    #[test]
    fn the_cache_lies_where_its_variable_says_else_with_the_users() {
        let cache = |wanted: &'static str| {
            let variables = move |name: &str| (name == wanted).then(|| OsString::from("/c"));
            BuildEnvironment::new(variables, |_| {}).map(|environment| environment.cache)
        };
        assert_eq!(cache("PERIAPT_CACHE"), Some("/c".into()));
        assert_eq!(cache("XDG_CACHE_HOME"), Some("/c/periapt".into()));
        assert_eq!(cache("HOME"), Some("/c/.cache/periapt".into()));
        assert_eq!(cache("PATH"), None);
    }
}
