//! The system calls of a workload: seccomp.
//!
//! Two filters bind it. The first one lets through the calls that were known when this list was made, so that a call of
//! a newer kernel fails as if the kernel did not have it. The second one refuses those that change the system, its time
//! or its namespaces, that look into other processes, or that reach large and rarely used parts of the kernel. Most of
//! them need rights that a container does not have; the filter is for the defects in the checks of these.

use std::{collections::BTreeMap, ops::RangeInclusive};

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// The numbers of the calls that are known. All processors share the later ones.
#[cfg(target_arch = "x86_64")]
const KNOWN: [RangeInclusive<c_long>; 2] = [0..=334, 424..=462];
#[cfg(not(target_arch = "x86_64"))]
const KNOWN: [RangeInclusive<c_long>; 2] = [0..=294, 424..=462];

/// Calls that are refused.
const REFUSED: &[c_long] = &[
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // The system and its time.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Other processes, and files without a path.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    // Large parts of the kernel, most of them not aware of namespaces.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_memfd_secret,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Calls that this processor alone has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// The kinds of namespaces that `clone` could make.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The families of sockets that are allowed: between processes, of the internet, and the kernel's news of interfaces.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Orders to terminals that put words into a user's mouth: `TIOCSTI` and `TIOCLINUX`.
const TERMINAL: [u64; 2] = [0x5412, 0x541c];

/// The execution domain of Linux, and the question for the current one.
const PERSONALITIES: [u64; 2] = [0, 0xffff_ffff];

/// Confines this process, and those that it starts. It has given up the right to new privileges before.
pub(super) fn confine() -> Result<(), String> {
    let confined = || -> Result<(), seccompiler::Error> {
        apply_filter(&known()?)?;
        apply_filter(&refused()?)
    };
    confined().map_err(|error| error.to_string())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn known() -> Result<BpfProgram, BackendError> {
    // Its flags are in memory, out of a filter's sight. Without it, the C library calls `clone`.
    let calls = KNOWN.into_iter().flatten().filter(|call| *call != libc::SYS_clone3);
    let rules: Rules = calls.map(|call| (call, Vec::new())).collect();
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    SeccompFilter::new(rules, unknown, SeccompAction::Allow, processor()?)?.try_into()
}

fn refused() -> Result<BpfProgram, BackendError> {
    let mut rules: Rules =
        [REFUSED, REFUSED_HERE].concat().into_iter().map(|call| (call, Vec::new())).collect();
    let namespace = |kind: libc::c_int| {
        let kind = u64::from(kind.unsigned_abs());
        rule(vec![condition(0, SeccompCmpOp::MaskedEq(kind), kind)?])
    };
    rules.insert(libc::SYS_clone, NAMESPACES.into_iter().map(namespace).collect::<Result<_, _>>()?);
    let other = |values: &[u64]| {
        rule(values.iter().map(|value| condition(0, SeccompCmpOp::Ne, *value)).collect::<Result<_, _>>()?)
    };
    let families = FAMILIES.map(|family| u64::from(family.unsigned_abs()));
    let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
    let not_of_interfaces = rule(vec![
        condition(0, SeccompCmpOp::Eq, netlink)?,
        condition(2, SeccompCmpOp::Ne, u64::from(libc::NETLINK_ROUTE.unsigned_abs()))?,
    ])?;
    rules.insert(libc::SYS_socket, vec![other(&families)?, not_of_interfaces]);
    rules.insert(libc::SYS_socketpair, vec![other(&[u64::from(libc::AF_UNIX.unsigned_abs())])?]);
    rules.insert(libc::SYS_personality, vec![other(&PERSONALITIES)?]);
    let order = |number: u64| rule(vec![condition(1, SeccompCmpOp::Eq, number)?]);
    rules.insert(libc::SYS_ioctl, TERMINAL.into_iter().map(order).collect::<Result<_, _>>()?);
    let error = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, error, processor()?)?.try_into()
}

fn processor() -> Result<TargetArch, BackendError> {
    TargetArch::try_from(std::env::consts::ARCH)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// Returns a condition on the lower half of an argument, which is all that the kernel reads of these.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}
