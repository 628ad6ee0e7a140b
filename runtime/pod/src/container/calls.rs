//! System calls that no library of this workspace has in a safe form.

use std::{
    ffi::{CStr, CString},
    io, mem,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

use libc::{c_int, c_long, c_ulong};
use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
    process::Pid,
};

const NOTHING: c_long = 0;

fn checked(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A program with its arguments and environment, in the kernel's form.
#[derive(Debug)]
pub(super) struct Image {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    /// Creates the form.
    pub(super) fn new(path: CString, arguments: Vec<CString>, environment: Vec<CString>) -> Self {
        Self { path, arguments, environment }
    }
}

/// The namespaces that each container has for itself.
const OWN: c_int = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// The namespaces of a new process, apart from that of processes.
#[derive(Debug, Clone, Copy)]
pub(super) enum NewNamespaces<'a> {
    /// Namespaces of its own alone.
    All,
    /// The namespaces of users and of the network are these, the others its own.
    Beside { users: BorrowedFd<'a>, network: BorrowedFd<'a> },
}

/// Starts a program in namespaces, as their root. It begins once a byte has come through the pipe, and ends if none
/// does. Of this process's descriptors, standard error and the last ones stay open in it.
pub(super) fn start(
    namespaces: NewNamespaces<'_>,
    image: &Image,
    (waits, go): (&io::PipeReader, &io::PipeWriter),
    kept: &[RawFd],
) -> io::Result<Pid> {
    let (waits, go) = (waits.as_raw_fd(), go.as_raw_fd());
    let pointers = |texts: &[CString]| {
        let all = texts.iter().map(|text| text.as_ptr());
        all.chain([ptr::null()]).collect::<Vec<_>>()
    };
    let (arguments, environment) = (pointers(&image.arguments), pointers(&image.environment));
    let (new, joined) = match namespaces {
        NewNamespaces::All => (libc::CLONE_NEWUSER | libc::CLONE_NEWNET | OWN, None),
        NewNamespaces::Beside { users, network } => (0, Some((users.as_raw_fd(), network.as_raw_fd()))),
    };
    let flags = c_long::from(new | libc::SIGCHLD);
    #[expect(
        unsafe_code,
        reason = "the child has a copy of this memory, and makes system calls alone until it is another program: it \
                  allocates nothing and takes no lock, as other threads may have held one; all pointers are those of \
                  values that live"
    )]
    unsafe {
        let pid = checked(libc::syscall(libc::SYS_clone, flags, NOTHING, NOTHING, NOTHING, NOTHING))?;
        if pid != 0 {
            let pid = c_int::try_from(pid).ok().and_then(Pid::from_raw);
            return pid.ok_or_else(|| io::Error::other("the kernel gave no process"));
        }
        let mut byte = 0_u8;
        libc::close(go);
        if libc::read(waits, ptr::from_mut(&mut byte).cast(), 1) != 1 {
            libc::_exit(126);
        }
        // Its users come first: they have the right to the others.
        if let Some((users, network)) = joined
            && (libc::setns(users, libc::CLONE_NEWUSER) != 0
                || libc::setns(network, libc::CLONE_NEWNET) != 0
                || libc::unshare(OWN) != 0)
        {
            libc::_exit(123);
        }
        // Refused where this user may have one group alone.
        libc::syscall(libc::SYS_setgroups, NOTHING, NOTHING);
        if libc::syscall(libc::SYS_setresgid, NOTHING, NOTHING, NOTHING) != 0
            || libc::syscall(libc::SYS_setresuid, NOTHING, NOTHING, NOTHING) != 0
        {
            libc::_exit(125);
        }
        // What the guard itself was given, such as a terminal or a lock, is not passed on; standard error is, for the log.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null < 0
            || libc::dup2(null, 0) != 0
            || libc::dup2(null, 1) != 1
            || libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as c_int) != 0
        {
            libc::_exit(124);
        }
        for descriptor in kept {
            libc::fcntl(*descriptor, libc::F_SETFD, 0);
        }
        libc::execve(image.path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
        libc::_exit(127)
    }
}

/// Copies this process into a new namespace of processes, whose first one the copy is. Returns none in the copy.
pub(super) fn fork_as_init() -> io::Result<Option<Pid>> {
    let flags = c_long::from(libc::CLONE_NEWPID | libc::SIGCHLD);
    #[expect(
        unsafe_code,
        reason = "it copies this process as fork does; the caller has no other thread that holds a lock"
    )]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, NOTHING, NOTHING, NOTHING, NOTHING) };
    Ok(Pid::from_raw(c_int::try_from(checked(pid)?).map_err(io::Error::other)?))
}

/// Copies this process into a new namespace of users. The copy does nothing, and ends once the pipe has no writer.
pub(super) fn fork_with_users((waits, go): (&io::PipeReader, &io::PipeWriter)) -> io::Result<Pid> {
    let (waits, go) = (waits.as_raw_fd(), go.as_raw_fd());
    let flags = c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    #[expect(
        unsafe_code,
        reason = "the child has a copy of this memory, and makes system calls alone until it ends; the pointer is that of a \
                  value that lives"
    )]
    unsafe {
        let pid = checked(libc::syscall(libc::SYS_clone, flags, NOTHING, NOTHING, NOTHING, NOTHING))?;
        if pid != 0 {
            let pid = c_int::try_from(pid).ok().and_then(Pid::from_raw);
            return pid.ok_or_else(|| io::Error::other("the kernel gave no process"));
        }
        let mut byte = 0_u8;
        libc::close(go);
        libc::read(waits, ptr::from_mut(&mut byte).cast(), 1);
        libc::_exit(0)
    }
}

/// Leaves the namespace of cgroups for a new one, whose root is the own cgroup.
pub(super) fn leave_cgroups() -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "it changes what this process sees of cgroups, and no descriptor or memory"
    )]
    let left = unsafe { libc::unshare(libc::CLONE_NEWCGROUP) };
    checked(left.into()).map(|_| ())
}

/// Closes all descriptors but the standard streams and these. The caller never returns to their owners.
pub(super) fn close_others(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let kept = kept.iter().map(|kept| libc::c_uint::try_from(kept.as_raw_fd()));
    let mut kept = kept.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    kept.sort_unstable();
    let mut next = 3;
    for descriptor in kept.into_iter().filter(|descriptor| *descriptor >= 3) {
        close_range(next, descriptor - 1)?;
        next = descriptor + 1;
    }
    close_range(next, libc::c_uint::MAX)
}

fn close_range(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    #[expect(unsafe_code, reason = "their owners are in frames to which this process never returns")]
    let closed = unsafe { libc::close_range(first, last, 0) };
    checked(closed.into()).map(|_| ())
}

/// Puts a descriptor in the place of the standard streams.
pub(super) fn replace_standard_streams(by: BorrowedFd<'_>) -> io::Result<()> {
    for stream in 0..3 {
        #[expect(unsafe_code, reason = "the standard streams have no owners that close them")]
        let replaced = unsafe { libc::dup2(by.as_raw_fd(), stream) };
        checked(replaced.into())?;
    }
    Ok(())
}

/// Kills all other processes of the namespace of which this process is the first.
pub(super) fn kill_all_others() -> io::Result<()> {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return Err(io::Error::other("this process is no init"));
    }
    #[expect(unsafe_code, reason = "it sends a signal to the processes of this namespace alone")]
    let sent = unsafe { libc::kill(-1, libc::SIGKILL) };
    checked(sent.into()).map(|_| ())
}

/// Ends this process without anything that it has prepared for its end: it is the copy of another one.
pub(super) fn exit(code: c_int) -> ! {
    #[expect(unsafe_code, reason = "it ends the process")]
    unsafe {
        libc::_exit(code)
    }
}

/// Takes a descriptor that another process left open in this one.
pub(super) fn inherited(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 3 {
        return Err(io::Error::other("a descriptor of the order is a standard stream"));
    }
    #[expect(
        unsafe_code,
        reason = "the guard leaves it open for this purpose, and nothing else here knows it"
    )]
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    rustix::io::fcntl_setfd(&owned, rustix::io::FdFlags::CLOEXEC)?;
    Ok(owned)
}

/// A mount to make.
#[derive(Debug, Default)]
pub(super) struct Mount<'a> {
    pub(super) source: Option<&'a CStr>,
    pub(super) kind: Option<&'a CStr>,
    pub(super) flags: c_ulong,
    pub(super) data: Option<&'a str>,
}

impl Mount<'_> {
    /// Mounts it.
    pub(super) fn at(&self, target: &CStr) -> io::Result<()> {
        let data = self.data.map(CString::new).transpose()?;
        let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
        #[expect(unsafe_code, reason = "the pointers are null or those of texts that live until it returns")]
        let mounted = unsafe {
            libc::mount(
                pointer(self.source),
                target.as_ptr(),
                pointer(self.kind),
                self.flags,
                pointer(data.as_deref()).cast(),
            )
        };
        checked(mounted.into()).map(|_| ())
    }
}

/// Takes away the mount at a path, with all that are below.
pub(super) fn unmount(target: &CStr) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the pointer is that of a text that lives until it returns")]
    let gone = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    checked(gone.into()).map(|_| ())
}

/// Returns a mount of a directory that is attached nowhere.
pub(super) fn open_tree(path: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    #[expect(unsafe_code, reason = "the path lives until it returns, and the descriptor is nobody else's")]
    unsafe {
        let tree = checked(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(c_int::try_from(tree).map_err(io::Error::other)?))
    }
}

/// Sets attributes of a mount. With a namespace of users, it shifts the owners of the files by its mapping.
pub(super) fn set_attributes(
    tree: BorrowedFd<'_>,
    attributes: u64,
    users: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes | users.map_or(0, |_| libc::MOUNT_ATTR_IDMAP),
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::try_from(users.map_or(0, |users| users.as_raw_fd())).map_err(io::Error::other)?,
    };
    #[expect(unsafe_code, reason = "the structure lives until it returns, and its size is told")]
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            ptr::from_ref(&attributes),
            mem::size_of_val(&attributes),
        )
    };
    checked(set).map(|_| ())
}

/// Attaches a mount at a directory.
pub(super) fn attach(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the texts live until it returns")]
    let moved = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH,
        )
    };
    checked(moved).map(|_| ())
}

/// Switches the loopback interface of this network on.
pub(super) fn switch_loopback_on() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    #[expect(unsafe_code, reason = "the structure is plain data, and lives until the call returns")]
    let done = unsafe {
        let mut request: libc::ifreq = mem::zeroed();
        for (place, letter) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *place = libc::c_char::from_ne_bytes([*letter]);
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, ptr::from_ref(&request))
    };
    checked(done.into()).map(|_| ())
}

/// Returns a descriptor that is readable when a child has ended. The signal of it is blocked from now on.
pub(super) fn ended_children() -> io::Result<OwnedFd> {
    #[expect(
        unsafe_code,
        reason = "the set is initialised before it is read, and the descriptor is nobody else's"
    )]
    unsafe {
        let mut set = mem::MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        checked(libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()).into())?;
        let descriptor =
            checked(libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())?;
        Ok(OwnedFd::from_raw_fd(c_int::try_from(descriptor).map_err(io::Error::other)?))
    }
}
