//! The files that a process may open: Landlock.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use super::{Fence, FenceError};
use crate::workload::{DirectoryAccess, WorkloadDirectory};

/// The version whose rights are denied, as far as a kernel has them. Later versions deny sockets alone, which seccomp
/// denies already (`calls.rs`).
const VERSION: ABI = ABI::V6;

/// Returns the rights to read a directory.
pub(super) fn read() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Returns the rights to write a directory. It gets no links and no special files: storage has none.
pub(super) fn write() -> BitFlags<AccessFs> {
    read()
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer
}

impl Fence<'_> {
    /// Returns the paths that a process may open, with their rights.
    fn allowed(self) -> Vec<(PathFd, BitFlags<AccessFs>)> {
        // A path that does not exist cannot be opened either.
        let place = |path: &Path, access| PathFd::new(path).ok().map(|place| (place, access));
        let paths = match self {
            Self::Helper => return Vec::new(),
            Self::Runner(paths) => paths,
            Self::Workload(directories) => {
                let of = |directory: &WorkloadDirectory| match directory.access {
                    DirectoryAccess::ReadOnly => place(&directory.host, read()),
                    DirectoryAccess::ReadWrite => place(&directory.host, write()),
                };
                return directories.iter().filter_map(of).collect();
            }
            Self::Pod(places) => return places.allowed(),
            Self::Counter(directory) => {
                return place(directory, BitFlags::from(AccessFs::ReadDir)).into_iter().collect();
            }
            Self::Unpacker(directory) => {
                // Whiteouts of overlays are devices with the number 0.
                let make = AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::MakeReg
                    | AccessFs::MakeDir
                    | AccessFs::MakeSym
                    | AccessFs::MakeChar
                    | AccessFs::RemoveFile
                    | AccessFs::RemoveDir
                    | AccessFs::Refer;
                return place(directory, read() | make).into_iter().collect();
            }
        };
        [place(&paths.charms, read()), place(&paths.storage, write())].into_iter().flatten().collect()
    }
}

/// Denies this thread all files but those of the fence, the network, and signals to processes outside.
pub(super) fn confine(fence: Fence<'_>) -> Result<(), FenceError> {
    match restrict(fence)? {
        RulesetStatus::NotEnforced => Err(FenceError::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn restrict(fence: Fence<'_>) -> Result<RulesetStatus, RulesetError> {
    let rules = Ruleset::default();
    let rules = match fence {
        Fence::Helper | Fence::Workload(_) | Fence::Pod(_) | Fence::Counter(_) => rules,
        // Before Linux 5.19 Landlock forbids renames and links from one directory to another, which hooks may do in their
        // storage, and images have. There they have no fence, rather than storage with other rules.
        Fence::Runner(_) | Fence::Unpacker(_) => rules
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer)?
            .set_compatibility(CompatLevel::BestEffort),
    };
    let rules = rules.handle_access(AccessFs::from_all(VERSION))?;
    let rules = match fence {
        Fence::Pod(places) if places.has_network() => rules,
        _ => rules.handle_access(AccessNet::from_all(VERSION))?,
    };
    let mut rules = rules.scope(Scope::from_all(VERSION))?.create()?;
    for (place, access) in fence.allowed() {
        rules = rules.add_rule(PathBeneath::new(place, access))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
