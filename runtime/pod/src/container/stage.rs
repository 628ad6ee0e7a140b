//! The files of a container: the image's layers below an upper one in memory, and what each container has of its own.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
};

use libc::{MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, MS_REMOUNT, c_ulong};
use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, ResolveFlags, chmodat, fstat, mkdirat, openat, openat2, symlinkat,
        unlinkat,
    },
    io::Errno,
    process::{chdir, pivot_root},
};

use super::{
    calls::{self, Mount},
    gap::Gap,
    order::{Layer, Order, OrderedMount},
};

/// The bytes of memory for one file more: the kernel's own record of it.
const BYTES_PER_FILE: u64 = 8 << 10;

/// The most bytes of memory that processes share by name.
const SHARED_MEMORY: u64 = 64 << 20;

/// The devices of a container.
const DEVICES: [(&CStr, &CStr, &str); 6] = [
    (c"/dev/null", c"root/dev/null", "null"),
    (c"/dev/zero", c"root/dev/zero", "zero"),
    (c"/dev/full", c"root/dev/full", "full"),
    (c"/dev/random", c"root/dev/random", "random"),
    (c"/dev/urandom", c"root/dev/urandom", "urandom"),
    (c"/dev/tty", c"root/dev/tty", "tty"),
];

/// The links of `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("pts/ptmx", "ptmx"),
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
];

/// The parts of `/sys` and `/proc` that tell of the host and not of the container.
const HIDDEN: [&CStr; 6] = [
    c"root/sys/firmware",
    c"root/sys/fs",
    c"root/sys/kernel",
    c"root/sys/module",
    c"root/sys/power",
    c"root/sys/hypervisor",
];
const HIDDEN_OF_PROCESSES: [&CStr; 10] = [
    c"root/proc/acpi",
    c"root/proc/asound",
    c"root/proc/driver",
    c"root/proc/scsi",
    c"root/proc/kcore",
    c"root/proc/keys",
    c"root/proc/key-users",
    c"root/proc/latency_stats",
    c"root/proc/sched_debug",
    c"root/proc/timer_list",
];

/// The parts of `/proc` that are settings of the kernel.
const READ_ONLY: [&CStr; 5] =
    [c"root/proc/bus", c"root/proc/fs", c"root/proc/irq", c"root/proc/sys", c"root/proc/sysrq-trigger"];

const OWN: c_ulong = MS_NOSUID | MS_NODEV;

/// Makes the root of the container below `/tmp/root`, the current directory being `/tmp`, with this content of
/// `/etc/resolv.conf`. `/proc` is the init's to
/// mount. Returns what is missing.
pub(super) fn build(order: &Order, resolv: &str) -> Result<Vec<Gap>, String> {
    // Changes of mounts stay in this namespace.
    Mount { flags: MS_REC | MS_PRIVATE, ..Mount::default() }.at(c"/").map_err(failed("anything"))?;
    // Before the stage covers `/tmp`, where they may be.
    let trees = order.layers.iter().map(tree).collect::<Result<Vec<_>, _>>()?;
    let mounts = order.mounts.iter().map(mount_tree).collect::<Result<Vec<_>, _>>()?;
    memory(c"/tmp", OWN, 1 << 20, "755").map_err(failed("the stage at /tmp"))?;
    chdir("/tmp").map_err(|error| error.to_string())?;
    let mut lower = Vec::new();
    let below = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for (number, tree) in trees.iter().enumerate().rev() {
        let place = format!("layer-{number}");
        make(&place, 0o755)?;
        let target = openat(CWD, place.as_str(), below, Mode::empty()).map_err(|error| error.to_string())?;
        calls::attach(tree.as_fd(), target.as_fd()).map_err(failed("the image's files"))?;
        lower.push(place);
    }
    for name in ["upper", "root"] {
        make(name, 0o755)?;
    }
    let disk = order.limits.disk;
    memory(c"upper", OWN, disk, "755").map_err(failed("the upper layer"))?;
    for name in ["upper/data", "upper/work"] {
        make(name, 0o755)?;
    }
    let data = format!("lowerdir={},upperdir=upper/data,workdir=upper/work,userxattr", lower.join(":"));
    let overlay = Mount { source: Some(c"overlay"), kind: Some(c"overlay"), flags: OWN, data: Some(&data) };
    overlay.at(c"root").map_err(|error| {
        format!(
            "cannot mount an overlay: {error}; containers need overlays of users (Linux 5.11) on tmpfs (6.6)"
        )
    })?;
    let root = openat(CWD, "root", below, Mode::empty());
    let root = root.map_err(|error| error.to_string())?;
    // The image is hostile: what is mounted upon must be a directory of the root, not a link to elsewhere.
    for name in ["proc", "sys", "dev", "etc"] {
        own_directory(&root, name)?;
    }
    devices(order)?;
    files(order, resolv, &root)?;
    for (mount, tree) in order.mounts.iter().zip(mounts) {
        let target = place_for(&root, &mount.target)?;
        calls::attach(tree.as_fd(), target.as_fd()).map_err(|error| {
            format!("cannot mount a directory at the container's {}: {error}", mount.target)
        })?;
    }
    rustix::system::sethostname(order.host_name.as_bytes())
        .map_err(|error| format!("cannot set the host's name: {error}"))?;
    Ok(system().err().into_iter().collect())
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot mount {what}: {error}")
}

/// Returns a layer as a mount that is attached nowhere.
fn tree(layer: &Layer) -> Result<OwnedFd, String> {
    match layer {
        Layer::Tree(descriptor) => calls::inherited(*descriptor).map_err(|error| error.to_string()),
        Layer::Path(path) => {
            let failed = |error: io::Error| format!("{}: {error}", path.display());
            let text = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
            calls::open_tree(&text).map_err(failed)
        }
    }
}

/// Returns a directory of the host as a mount that is attached nowhere.
fn mount_tree(mount: &OrderedMount) -> Result<OwnedFd, String> {
    let tree = tree(&mount.source)?;
    // The guard has set those of a mount that it has opened.
    if let Layer::Path(path) = &mount.source {
        let set = calls::set_attributes(tree.as_fd(), mount.access.attributes(), None);
        set.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(tree)
}

/// Returns the directory of the root that a mount covers. Links of the image lead to places of the root alone. Missing
/// directories are made.
fn place_for(root: &OwnedFd, target: &str) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    let mut at = own_directory(root, ".")?;
    let mut path = String::new();
    for part in target.split('/').filter(|part| !part.is_empty()) {
        path.push('/');
        path.push_str(part);
        at = match openat2(root, path.as_str(), flags, Mode::empty(), resolve) {
            Ok(found) => found,
            Err(Errno::NOENT) => own_directory(&at, part)?,
            Err(error) => return Err(format!("the image's {path} is no place for a mount: {error}")),
        };
    }
    // A link of the image may lead to the root itself, or to a directory that is mounted upon later by its path. A mount
    // there would have the workload's own files where those of the host are bound from.
    for reserved in [".", "proc", "sys"] {
        if is_same(&at, &own_directory(root, reserved)?)? {
            return Err(format!(
                "the image's {path} is no place for a mount: it leads to the root, to /proc or to /sys"
            ));
        }
    }
    Ok(at)
}

/// Returns true if two descriptors are of one directory.
fn is_same(one: &OwnedFd, other: &OwnedFd) -> Result<bool, String> {
    let of = |descriptor: &OwnedFd| fstat(descriptor).map_err(|error| error.to_string());
    let (one, other) = (of(one)?, of(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// Mounts a file system in memory.
fn memory(target: &CStr, flags: c_ulong, bytes: u64, mode: &str) -> io::Result<()> {
    let files = (bytes / BYTES_PER_FILE).max(256);
    let data = format!("size={bytes},nr_inodes={files},mode={mode}");
    Mount { source: Some(c"tmpfs"), kind: Some(c"tmpfs"), flags, data: Some(&data) }.at(target)
}

fn make(name: &str, mode: u32) -> Result<(), String> {
    let mode = Mode::from_raw_mode(mode);
    let made = mkdirat(CWD, name, mode).and_then(|()| chmodat(CWD, name, mode, AtFlags::empty()));
    made.map_err(|error| format!("cannot make the directory {name}: {error}"))
}

/// Returns a directory of the root, which is made if it is missing.
fn own_directory(root: &OwnedFd, name: &str) -> Result<OwnedFd, String> {
    match mkdirat(root, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(format!("cannot make the image's /{name}: {error}")),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(root, name, flags, Mode::empty(), resolve)
        .map_err(|_| format!("the image's /{name} is no directory, which a container needs"))
}

/// Makes `/dev`.
fn devices(order: &Order) -> Result<(), String> {
    memory(c"root/dev", MS_NOSUID | MS_NOEXEC, 64 << 10, "755").map_err(failed("/dev"))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dev = openat(CWD, "root/dev", flags, Mode::empty()).map_err(|error| error.to_string())?;
    for (device, place, name) in DEVICES {
        new_file(&dev, name, "").map_err(failed("a device"))?;
        let bind = Mount { source: Some(device), flags: MS_BIND, ..Mount::default() };
        bind.at(place).map_err(failed("a device"))?;
    }
    for name in ["root/dev/pts", "root/dev/shm"] {
        make(name, 0o755)?;
    }
    // The group of terminals, where the container has it.
    let group = if order.has_users { ",gid=5" } else { "" };
    let data = format!("newinstance,ptmxmode=0666,mode=620{group},max=256");
    let flags = MS_NOSUID | MS_NOEXEC;
    let terminals = Mount { source: Some(c"devpts"), kind: Some(c"devpts"), flags, data: Some(&data) };
    terminals.at(c"root/dev/pts").map_err(failed("/dev/pts"))?;
    let shared = SHARED_MEMORY.min(order.limits.memory);
    memory(c"root/dev/shm", OWN | MS_NOEXEC, shared, "1777").map_err(failed("/dev/shm"))?;
    for (target, name) in LINKS {
        symlinkat(target, &dev, name).map_err(|error| format!("cannot make /dev/{name}: {error}"))?;
    }
    Ok(())
}

/// Writes the files about the host and its network, in the place of the image's.
fn files(order: &Order, resolv: &str, root: &OwnedFd) -> Result<(), String> {
    let etc = own_directory(root, "etc")?;
    let name = format!("{}\n", order.host_name);
    for (file, content) in [("hosts", order.hosts.as_str()), ("resolv.conf", resolv), ("hostname", &name)] {
        let failed = |error: io::Error| format!("cannot write the container's /etc/{file}: {error}");
        match unlinkat(&etc, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
        new_file(&etc, file, content).map_err(failed)?;
    }
    Ok(())
}

fn new_file(directory: &OwnedFd, name: &str, content: &str) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::from_raw_mode(0o644))?;
    File::from(file).write_all(content.as_bytes())
}

/// Mounts `/sys`, read-only and without what tells of the host. A container does without, if it cannot be had.
fn system() -> Result<(), Gap> {
    let flags = OWN | MS_NOEXEC | MS_RDONLY;
    let sys = Mount { source: Some(c"sysfs"), kind: Some(c"sysfs"), flags, data: None };
    sys.at(c"root/sys").map_err(|error| {
        Gap::new(
            "/sys",
            format!("cannot be mounted: {error}; it is empty (this host hides parts of its own)"),
            "",
        )
    })?;
    for place in HIDDEN {
        if let Err(error) = hide(place) {
            // It shows all or nothing.
            let _ = calls::unmount(c"root/sys");
            let reason = format!("parts of it cannot be hidden: {error}; it is empty");
            return Err(Gap::new("/sys", reason, ""));
        }
    }
    Ok(())
}

/// Mounts `/proc` for the namespace of processes that this process is in, below the root that `build` made.
pub(super) fn processes() -> Result<(), String> {
    let flags = OWN | MS_NOEXEC;
    let proc = Mount { source: Some(c"proc"), kind: Some(c"proc"), flags, data: None };
    proc.at(c"root/proc").map_err(|error| {
        format!("cannot mount /proc: {error}; a host whose own /proc is partly hidden, as in most containers, refuses it")
    })?;
    for place in HIDDEN_OF_PROCESSES {
        hide(place).map_err(|error| format!("cannot hide {}: {error}", place.to_string_lossy()))?;
    }
    for place in READ_ONLY {
        let bind = Mount { source: Some(place), flags: MS_BIND | MS_REC, ..Mount::default() };
        let flags = MS_BIND | MS_REMOUNT | MS_RDONLY | OWN | MS_NOEXEC;
        let remount = Mount { flags, ..Mount::default() };
        match bind.at(place).and_then(|()| remount.at(place)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(format!("cannot protect {}: {error}", place.to_string_lossy()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Covers a directory by an empty one, or a file by an empty device. What is not there needs no cover.
fn hide(place: &CStr) -> io::Result<()> {
    let path = place.to_str().map_err(io::Error::other)?;
    let covered = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => memory(place, OWN | MS_NOEXEC | MS_RDONLY, 4 << 10, "555"),
        Ok(_) => Mount { source: Some(c"root/dev/null"), flags: MS_BIND, ..Mount::default() }.at(place),
        Err(error) => Err(error),
    };
    covered.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Takes all files away from this process, which has its mounts for itself.
pub(super) fn have_no_files() -> Result<(), String> {
    Mount { flags: MS_REC | MS_PRIVATE, ..Mount::default() }.at(c"/").map_err(failed("anything"))?;
    memory(c"/tmp", OWN | MS_NOEXEC | MS_RDONLY, 4 << 10, "555").map_err(failed("an empty root"))?;
    chdir("/tmp").map_err(|error| error.to_string())?;
    let left = pivot_root(".", ".").map_err(io::Error::from).and_then(|()| calls::unmount(c"."));
    left.map_err(|error| format!("cannot leave the host's files: {error}"))?;
    chdir("/").map_err(|error| error.to_string())
}

/// Makes the root of the container this process's, and takes the host's files away.
pub(super) fn enter() -> io::Result<()> {
    chdir("root")?;
    // The old root comes to lie upon the new one, and is taken away from there.
    pivot_root(".", ".")?;
    calls::unmount(c".")?;
    Ok(chdir("/")?)
}
