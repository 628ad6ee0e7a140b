//! The operating system's fence around the processes that come near strangers' code: helpers, which read it, and the
//! runner, which runs it (`docs/decisions/0020-*`).
//!
//! The engine keeps a guest in its place. This is for the day on which the engine has a defect and a guest commands its
//! process: what that reaches then is what it was handed, and nothing else of the host.
//!
//! A fence binds the thread that raises it and all that this one starts, for good. So it is raised before there is a second
//! thread, and before a byte of a stranger's was read.

use std::{fmt, io, path::PathBuf};

use rustix::{
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs},
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};

mod calls;
mod files;
#[cfg(test)]
mod tests;

/// Whose fence it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence<'a> {
    /// It computes, reads and writes what is open, and starts threads.
    Helper,
    /// It opens files in some directories as well, and maps code.
    Runner(&'a RunnerPlaces),
}

/// The directories that a runner works in; its last argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunnerPlaces {
    /// Charms' files, to be read.
    pub charms: PathBuf,
    /// The storage of its model's units. It is there before the runner is.
    pub storage: PathBuf,
}

/// A part of the fence that this host does not offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What is not fenced.
    pub part: &'static str,
    /// Why not.
    pub reason: String,
}

/// Why a part of the fence was not raised.
#[derive(Debug, thiserror::Error)]
enum FenceError {
    /// Privileges could not be given up.
    #[error(transparent)]
    Privileges(#[from] rustix::io::Errno),
    /// The kernel offers no fence around files.
    #[error("this kernel has no Landlock, or it is switched off")]
    NoLandlock,
    /// The fence around files was refused.
    #[error(transparent)]
    Files(#[from] landlock::RulesetError),
    /// No filter of system calls could be made.
    #[error(transparent)]
    Filter(#[from] seccompiler::BackendError),
    /// The filter was refused.
    #[error(transparent)]
    Calls(#[from] seccompiler::Error),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)
    }
}

impl RunnerPlaces {
    /// As the argument.
    pub fn to_argument(&self) -> String {
        // Paths that are no text have no JSON form; without one the runner says that it got none.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Fence<'_> {
    /// Raises it around this thread, as far as the host offers it.
    pub fn raise(self) -> Vec<Gap> {
        // A library looks up once where the kernel's clock is, in a file that is out of reach afterwards.
        let _ = clock_gettime(ClockId::Monotonic);
        let parts = [
            ("privileges", self.without_privileges()),
            ("files", files::confine(self)),
            // The last, since it forbids what raises the others.
            ("system calls", calls::confine(self)),
        ];
        parts
            .into_iter()
            .filter_map(|(part, raised)| raised.err().map(|error| Gap { part, reason: error.to_string() }))
            .collect()
    }

    /// Takes away what the agent's user may do beyond its own files, if it is the superuser.
    fn without_privileges(self) -> Result<(), FenceError> {
        let kept = match self {
            Self::Helper => CapabilitySet::empty(),
            // The agent's directory may lie in somebody else's home.
            Self::Runner(_) => CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH,
        };
        let lowered = set_no_new_privs(true).and_then(|()| capabilities(None)).and_then(|now| {
            let permitted = now.permitted & kept;
            let sets = CapabilitySets {
                effective: now.effective & permitted,
                permitted,
                inheritable: CapabilitySet::empty(),
            };
            set_capabilities(None, sets)
        });
        Ok(lowered?)
    }
}

/// What this host does not offer, found out by raising a fence around a thread that ends.
pub fn gaps() -> io::Result<Vec<Gap>> {
    let thread = std::thread::Builder::new().name("fence".to_owned());
    let raised = thread.spawn(|| Fence::Helper.raise())?;
    raised.join().map_err(|_| io::Error::other("the thread that tried it ended"))
}
