//! The rights that are given up inside of a container.

use std::io;

use landlock::{
    AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus,
};
use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_capabilities, set_no_new_privs,
    },
};

/// The capabilities of a workload's root, over what the container's namespaces own alone: to install and give away files,
/// to be other users, to end their processes, to serve low ports.
pub(super) const WORKLOAD: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

/// The capabilities of the pod's process: it reads, writes and gives away all files of the container.
pub(super) const POD: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// The most open files of a process.
const MAX_FILES: u64 = 64 << 10;

/// Gives up all capabilities but these, for good.
pub(super) fn keep(kept: CapabilitySet) -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel knows no more.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    set_no_new_privs(true)?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// The most threads of the pod's process: the kernel counts them as those of the container's root.
pub(super) const POD_THREADS: u32 = 81;

/// Sets the limits of processes. That of processes counts those of one user of the container: a second bound, for hosts
/// without cgroups.
pub(super) fn limit(processes: u32) -> io::Result<()> {
    let files = getrlimit(Resource::Nofile).maximum.map_or(MAX_FILES, |most| most.min(MAX_FILES));
    let wanted = [
        (Resource::Core, 0),
        (Resource::Nofile, files),
        (Resource::Nproc, u64::from(processes.saturating_add(POD_THREADS))),
    ];
    for (resource, most) in wanted {
        let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Denies writes to all files that are not below the root, for this process and those that it starts. `/proc/PID/exe`
/// leads to the program of the init, which is a file of the host.
pub(super) fn write_below_root_alone() -> Result<(), String> {
    let root = PathFd::new("/").map_err(|error| error.to_string())?;
    let denied = || -> Result<RulesetStatus, RulesetError> {
        let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::Refer;
        let rules = Ruleset::default()
            // Without this right, renames from a directory to another would be denied everywhere.
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer)?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(write)?
            .create()?
            .add_rule(PathBeneath::new(root, write))?;
        Ok(rules.restrict_self()?.ruleset)
    };
    match denied() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Ok(()),
        Ok(RulesetStatus::NotEnforced) => {
            Err("this kernel has no Landlock, or it is switched off".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
