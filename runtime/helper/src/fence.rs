//! The operating system's fence (Landlock and seccomp) around processes near untrusted code: helpers, which read it,
//! and runners, workloads and their pods, which run it (`docs/decisions/0020-*`, `0086-*`, `0108-*`).
//!
//! The engine confines a guest. The fence is for the day on which the engine has a defect and a guest controls its
//! process: the guest then reaches the process's open descriptors, and nothing else of the host.
//!
//! A fence binds the thread that raises it and all threads that it starts, for good. So it is raised before there is a
//! second thread, and before the process reads an untrusted byte.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use rustix::{
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs},
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};

use crate::workload::WorkloadDirectory;

mod calls;
mod files;
mod pod;
#[cfg(test)]
mod tests;

pub use pod::{PodPlaces, PodSockets};

/// The fence of a kind of process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence<'a> {
    /// A helper's. It computes, uses open descriptors, and starts threads.
    Helper,
    /// The fence of a helper that unpacks images below a directory. It makes files, directories and links of any kind there,
    /// and opens nothing else.
    Unpacker(&'a Path),
    /// The fence of a helper that counts the files below a directory. It lists the directories there, and reads no file.
    Counter(&'a Path),
    /// A runner's. It also opens files in some directories, and maps code.
    Runner(&'a RunnerPaths),
    /// A workload's. It reads some directories, accepts connections on an open socket, and maps code.
    Workload(&'a [WorkloadDirectory]),
    /// The fence of a pod with WebAssembly workloads. It writes its root, and starts the processes of its workloads, which
    /// raise their own within it.
    Pod(&'a PodPlaces),
}

/// The directories of a runner; its last argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunnerPaths {
    /// The charms' files, read-only.
    pub charms: PathBuf,
    /// The storage of its model's units. It exists before the runner starts.
    pub storage: PathBuf,
}

/// A part of the fence that this host lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFence {
    /// The name of the part.
    pub part: &'static str,
    /// The reason.
    pub reason: String,
}

/// The reason why a part of the fence was not raised.
#[derive(Debug, thiserror::Error)]
enum FenceError {
    /// The process could not drop its privileges.
    #[error(transparent)]
    Privileges(#[from] rustix::io::Errno),
    /// The kernel has no Landlock.
    #[error("this kernel has no Landlock, or it is switched off")]
    NoLandlock,
    /// The kernel refused the Landlock rules.
    #[error(transparent)]
    Files(#[from] landlock::RulesetError),
    /// The seccomp filter could not be compiled.
    #[error(transparent)]
    Filter(#[from] seccompiler::BackendError),
    /// The kernel refused the seccomp filter.
    #[error(transparent)]
    Calls(#[from] seccompiler::Error),
}

impl fmt::Display for MissingFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)
    }
}

impl RunnerPaths {
    /// Encodes it as the runner's last argument.
    pub fn to_argument(&self) -> String {
        // A path that is no text has no JSON form. Without JSON the runner reports a missing argument.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Fence<'_> {
    /// Returns the most open descriptors of a helper: a removed tree has one for each directory on the way.
    pub(crate) fn descriptors(&self) -> u64 {
        match self {
            Self::Unpacker(_) => 256,
            _ => 16,
        }
    }

    /// Raises the fence around this thread, and returns the parts that this host lacks.
    pub fn raise(self) -> Vec<MissingFence> {
        // A library looks the kernel's clock up once, in a file that is out of reach behind the fence.
        let _ = clock_gettime(ClockId::Monotonic);
        let parts = [
            ("privileges", self.without_privileges()),
            ("files", files::confine(self)),
            // This part is the last, because it forbids the calls that raise the others.
            ("system calls", calls::confine(self)),
        ];
        parts
            .into_iter()
            .filter_map(|(part, raised)| {
                raised.err().map(|error| MissingFence { part, reason: error.to_string() })
            })
            .collect()
    }

    /// Drops the superuser's privileges, which reach beyond the agent's own files.
    fn without_privileges(self) -> Result<(), FenceError> {
        set_no_new_privs(true)?;
        let now = capabilities(None)?;
        let keep = |kept: CapabilitySet, used: CapabilitySet| {
            let permitted = now.permitted & kept;
            let effective = now.effective & permitted & used;
            let inheritable = CapabilitySet::empty();
            set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
        };
        let kept = match self {
            Self::Helper => CapabilitySet::empty(),
            // The agent's directory may lie in another user's home.
            // The last one is for files in sticky directories of a container's other users. The runner's system calls change no
            // mode and no owner.
            Self::Runner(_) => {
                CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER
            }
            Self::Workload(_) | Self::Unpacker(_) | Self::Counter(_) => CapabilitySet::DAC_READ_SEARCH,
            Self::Pod(places) => {
                keep(CapabilitySet::DAC_READ_SEARCH, CapabilitySet::empty())?;
                match places.are_reachable() {
                    true => CapabilitySet::empty(),
                    false => CapabilitySet::DAC_READ_SEARCH,
                }
            }
        };
        Ok(keep(kept, kept)?)
    }
}

/// Returns the parts that this host lacks. It raises a fence around a thread that ends.
pub fn gaps() -> io::Result<Vec<MissingFence>> {
    let thread = std::thread::Builder::new().name("fence".to_owned());
    let raised = thread.spawn(|| Fence::Helper.raise())?;
    raised.join().map_err(|_| io::Error::other("the thread that tried it ended"))
}
