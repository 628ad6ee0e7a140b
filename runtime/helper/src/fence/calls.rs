//! The system calls that a process may make: seccomp.
//!
//! A call that is not listed fails as if the kernel did not have it, so that a C library that tries a new call falls
//! back to an older one. No list has other processes' memory, owners of files, rings, keys, mounts or namespaces. That of
//! unpackers alone has links, modes and attributes of files; that of pods alone has programs, processes and signals, and has
//! sockets for one that is started by hand.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::{Fence, FenceError};

/// Calls for all fences: open descriptors, memory, threads, time, and the process itself.
const COMMON: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    // Libraries expect these calls never to fail.
    libc::SYS_getcpu,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
];

/// Calls for a runner: files by name, where [`super::files`] allows them; its inherited socket; and waiting for events.
const RUNNER: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_fstatfs,
    libc::SYS_getdents64,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_memfd_create,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_mmap,
    libc::SYS_mprotect,
];

/// Calls for a workload beside a runner's: connections to its inherited socket, and the targets of links, which the
/// engine follows itself.
const WORKLOAD: &[c_long] = &[libc::SYS_accept4, libc::SYS_readlinkat];

/// Calls for an unpacker: files, directories and links by name, with modes, times and marks of overlays.
const UNPACKER: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_getdents64,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_fsetxattr,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_flock,
    libc::SYS_pwrite64,
];

/// Calls for a counter: the names and sizes of files.
const COUNTER: &[c_long] = &[libc::SYS_openat, libc::SYS_statx, libc::SYS_newfstatat, libc::SYS_getdents64];

/// Calls for a pod beside a workload's: the start and the end of its workloads' processes, and what these call before they
/// raise a fence of their own.
const POD: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_setpgid,
    libc::SYS_chdir,
    libc::SYS_getcwd,
    libc::SYS_umask,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_set_tid_address,
    libc::SYS_close_range,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// Calls for a pod that is started by hand, with sockets of the host.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_connect,
    libc::SYS_setsockopt,
    libc::SYS_sendmmsg,
];

/// Older names of calls that name files, which only this processor has.
#[cfg(target_arch = "x86_64")]
const OLDER_FILES: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_FILES: &[c_long] = &[];

/// Older names of a runner's other calls.
#[cfg(target_arch = "x86_64")]
const OLDER_RUNNER: &[c_long] = &[libc::SYS_getdents, libc::SYS_epoll_wait, libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_RUNNER: &[c_long] = &[];

/// Older names of an unpacker's other calls.
#[cfg(target_arch = "x86_64")]
const OLDER_UNPACKER: &[c_long] = &[libc::SYS_chmod, libc::SYS_link, libc::SYS_symlink];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_UNPACKER: &[c_long] = &[];

/// Older names of a pod's other calls.
#[cfg(target_arch = "x86_64")]
const OLDER_POD: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_dup2,
    libc::SYS_arch_prctl,
    libc::SYS_fork,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_POD: &[c_long] = &[];

/// The bits of a socket's type that are its kind.
const KINDS_OF_SOCKETS: u64 = 0xf;

/// The namespaces that `clone` could make.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The settings of processes that a pod and its workloads change: names, the end with a parent or after it, and the right to
/// new privileges, which they give up.
const POD_SETTINGS: [libc::c_int; 5] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_PDEATHSIG,
    libc::PR_SET_CHILD_SUBREAPER,
    libc::PR_SET_NO_NEW_PRIVS,
];

/// The commands of `fcntl`: flags, copies and seals of open descriptors. Commands about signals are left out.
const FCNTL: [i32; 8] = [
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
];

/// Confines this thread, and those that it starts, to the system calls of a fence.
pub(super) fn confine(fence: Fence<'_>) -> Result<(), FenceError> {
    Ok(apply_filter(&program(fence)?)?)
}

fn program(fence: Fence<'_>) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = conditional()?;
    let always = match fence {
        Fence::Helper => {
            rules.extend(no_code()?);
            vec![COMMON]
        }
        Fence::Unpacker(_) => {
            rules.extend(no_code()?);
            vec![COMMON, UNPACKER, OLDER_FILES, OLDER_UNPACKER]
        }
        Fence::Counter(_) => {
            rules.extend(no_code()?);
            vec![COMMON, COUNTER]
        }
        Fence::Runner(_) => {
            rules.extend(runner_conditional()?);
            vec![COMMON, RUNNER, OLDER_FILES, OLDER_RUNNER]
        }
        Fence::Workload(_) => {
            rules.extend(runner_conditional()?);
            vec![COMMON, RUNNER, OLDER_FILES, OLDER_RUNNER, WORKLOAD]
        }
        Fence::Pod(places) => {
            rules.extend(runner_conditional()?);
            rules.extend(pod_conditional()?);
            let sockets: &[c_long] = if places.has_network() { SOCKETS } else { &[] };
            vec![COMMON, RUNNER, OLDER_FILES, OLDER_RUNNER, WORKLOAD, POD, OLDER_POD, sockets]
        }
    };
    rules.extend(always.concat().into_iter().map(|call| (call, Vec::new())));
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let processor = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, unknown, SeccompAction::Allow, processor)?.try_into()
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the calls for all fences with restricted arguments.
fn conditional() -> Result<Rules, BackendError> {
    let thread = libc::CLONE_THREAD.unsigned_abs().into();
    let name = libc::PR_SET_NAME.unsigned_abs().into();
    Ok(BTreeMap::from([
        // Threads, but no processes. `clone3` has its flags in memory, so it is denied and the C library falls back to
        // this.
        (libc::SYS_clone, vec![when([masked(0, thread, thread)?])?]),
        (libc::SYS_prctl, vec![when([number(0, name)?])?]),
        // An abort is a signal to the own process.
        (libc::SYS_tgkill, vec![when([number(0, std::process::id().into())?])?]),
        // Reads of its own limits.
        (libc::SYS_prlimit64, vec![when([number(0, 0)?, null(2)?])?]),
        (libc::SYS_fcntl, any_of(1, FCNTL.map(|command| u64::from(command.unsigned_abs())))?),
    ]))
}

/// Returns rules without executable memory: a compiler writes code and runs none.
fn no_code() -> Result<Rules, BackendError> {
    let executable = libc::PROT_EXEC.unsigned_abs().into();
    let data = || when([masked(2, executable, 0)?]);
    Ok(BTreeMap::from([(libc::SYS_mmap, vec![data()?]), (libc::SYS_mprotect, vec![data()?])]))
}

/// Returns the calls for a runner with restricted arguments.
fn runner_conditional() -> Result<Rules, BackendError> {
    Ok(BTreeMap::from([
        // Sockets between its own threads.
        (libc::SYS_socketpair, vec![when([number(0, libc::AF_UNIX.unsigned_abs().into())?])?]),
        (libc::SYS_ioctl, any_of(1, [libc::FIONBIO, libc::FIOCLEX])?),
        // Times of open files, not of named ones.
        (libc::SYS_utimensat, vec![when([null(1)?])?]),
    ]))
}

/// Returns the calls for a pod with restricted arguments. Its workloads' processes inherit the restrictions.
fn pod_conditional() -> Result<Rules, BackendError> {
    let family = libc::AF_UNIX.unsigned_abs().into();
    // Flags are in the higher bits. Sockets of datagrams, which can be sent to any other, are left out.
    let pair = |kind: libc::c_int| {
        when([number(0, family)?, masked(1, KINDS_OF_SOCKETS, kind.unsigned_abs().into())?])
    };
    Ok(BTreeMap::from([
        (libc::SYS_clone, vec![when([masked(0, NAMESPACES.unsigned_abs().into(), 0)?])?]),
        (libc::SYS_prctl, any_of(0, POD_SETTINGS.map(|setting| u64::from(setting.unsigned_abs())))?),
        // Limits of its own process.
        (libc::SYS_prlimit64, vec![when([number(0, 0)?])?]),
        (libc::SYS_socketpair, vec![pair(libc::SOCK_STREAM)?, pair(libc::SOCK_SEQPACKET)?]),
    ]))
}

fn any_of<const N: usize>(argument: u8, values: [u64; N]) -> Result<Vec<SeccompRule>, BackendError> {
    values.into_iter().map(|value| when([number(argument, value)?])).collect()
}

fn when<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}

/// Returns a condition on an argument of 32 bits.
fn number(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

fn null(argument: u8) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}
