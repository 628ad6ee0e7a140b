//! The cgroups of a container: its bounds of memory, processes and processor time, and what it uses of them.
//!
//! The container's guard makes them and removes them. The process that started the guard finds them by the guard's
//! process, because both are in the same cgroup.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::Pid;

/// The begin of the names of cgroups. The guard's process follows.
const PREFIX: &str = "periapt-container-";

/// The period of processor time, in microseconds: the kernel's own default.
const PERIOD: u64 = 100_000;

/// The remedy of a host that shows no cgroups, or none with a controller.
const MOUNT_THEM: &str = "mount cgroups with the controllers memory and pids at /sys/fs/cgroup";

/// The time in which a cgroup without processes can be removed.
const REMOVAL_TIME: Duration = Duration::from_secs(5);

/// The bounds of a container's cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupLimits {
    /// The most bytes of memory.
    pub memory: u64,
    /// The most processes and threads.
    pub processes: u32,
    /// The most processor time, in thousandths of a processor; none for all.
    pub cpu: Option<u32>,
}

/// A bound that this host does not keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingBound {
    /// The bound.
    pub bound: &'static str,
    /// The reason.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
}

impl MissingBound {
    fn new(bound: Bound, reason: String, remedy: &str) -> Self {
        Self { bound: bound.shown(), reason, remedy: remedy.to_owned() }
    }
}

/// A kind of bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Memory,
    Processes,
    Processor,
}

/// A file of a bound, the text to write, and true if a kernel may lack it.
type BoundFile = (&'static str, String, bool);

impl Bound {
    const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::Processor];

    const fn controller(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::Processor => "cpu",
        }
    }

    const fn shown(self) -> &'static str {
        match self {
            Self::Memory => "limit of memory",
            Self::Processes => "limit of processes",
            Self::Processor => "limit of processor time",
        }
    }

    /// Returns the files to write, and true for those that a kernel may lack.
    fn files(self, of: Version, limits: &CgroupLimits) -> Vec<BoundFile> {
        let CgroupLimits { memory, processes, cpu } = limits;
        let quota = cpu.map(|cpu| u64::from(cpu) * PERIOD / 1_000);
        match (self, of) {
            (Self::Memory, Version::Two) => {
                vec![("memory.max", memory.to_string(), false), ("memory.swap.max", "0".to_owned(), true)]
            }
            (Self::Memory, Version::One) => vec![
                ("memory.limit_in_bytes", memory.to_string(), false),
                ("memory.memsw.limit_in_bytes", memory.to_string(), true),
            ],
            (Self::Processes, _) => vec![("pids.max", processes.to_string(), false)],
            (Self::Processor, Version::Two) => {
                let quota = quota.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
                vec![("cpu.max", format!("{quota} {PERIOD}"), false)]
            }
            (Self::Processor, Version::One) => {
                let quota = quota.map_or_else(|| "-1".to_owned(), |quota| quota.to_string());
                vec![("cpu.cfs_period_us", PERIOD.to_string(), false), ("cpu.cfs_quota_us", quota, false)]
            }
        }
    }
}

/// A version of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The own cgroup in a hierarchy.
#[derive(Debug)]
struct Place {
    version: Version,
    /// The controllers of version 1.
    controllers: Vec<String>,
    directory: PathBuf,
    /// The root of the hierarchy, as far as this process sees it.
    top: PathBuf,
}

/// The cgroups of a container. They are removed with it.
#[derive(Debug, Default)]
pub struct Cgroups {
    directories: Vec<PathBuf>,
}

/// The hierarchy of a bound: its version, and the directory in which cgroups of containers are made.
type Hierarchy = (Version, PathBuf);

/// Returns the own cgroups of this process.
fn own_places() -> Vec<Place> {
    places(
        &fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        &fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
    )
}

/// Returns the hierarchy that has the controller of a bound.
fn hierarchy(bound: Bound, places: &[Place]) -> Result<Hierarchy, MissingBound> {
    let controller = bound.controller();
    if let Some(place) = places.iter().find(|place| place.controllers.iter().any(|it| it == controller)) {
        return Ok((Version::One, place.directory.clone()));
    }
    let place = places.iter().find(|place| place.version == Version::Two);
    let place = place.ok_or_else(|| {
        MissingBound::new(
            bound,
            format!("this host has no cgroups with the controller {controller}"),
            MOUNT_THEM,
        )
    })?;
    // The own cgroup has processes: cgroups below it have no bounds, unless it is the host's root, which alone has no
    // type. A process is in one cgroup: all bounds are in one place.
    match place.directory.parent() {
        Some(beside) if place.directory != place.top => Ok((Version::Two, beside.to_owned())),
        _ if place.top.join("cgroup.type").exists() => Err(MissingBound::new(
            bound,
            format!("{}: has processes, so that cgroups below it have no bounds", place.top.display()),
            "run the agent in a cgroup below it",
        )),
        _ => Ok((Version::Two, place.directory.clone())),
    }
}

/// Writes the files of a bound. One that may be missing is passed over.
fn write_files<'a>(directory: &Path, files: impl Iterator<Item = &'a BoundFile>) -> Result<(), String> {
    for (file, value, may_be_missing) in files {
        let file = directory.join(file);
        if *may_be_missing && !file.exists() {
            continue;
        }
        // A missing controller is an error of the file.
        write_present(&file, value).map_err(|error| at(&file, error))?;
    }
    Ok(())
}

/// Writes a file that the kernel has made.
fn write_present(file: &Path, value: &str) -> io::Result<()> {
    use io::Write as _;
    fs::OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

/// Has cgroups of version 2 keep a bound below a directory. Those of others there may have enabled it before.
fn enable(bound: Bound, parent: &Path) -> Result<(), String> {
    let controller = bound.controller();
    let offered = fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
    if !offered.split_whitespace().any(|it| it == controller) {
        return Err(format!("{}: the host offers no controller {controller} there", parent.display()));
    }
    let file = parent.join("cgroup.subtree_control");
    fs::write(&file, format!("+{controller}")).map_err(|error| at(&file, error))
}

fn at(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
}

impl Cgroups {
    /// Makes the cgroups, and says which bounds the host does not keep.
    #[must_use]
    pub fn create(limits: &CgroupLimits) -> (Self, Vec<MissingBound>) {
        let places = own_places();
        let mut cgroups = Self::default();
        let mut missing = Vec::new();
        for bound in Bound::ALL {
            let bind = cgroups.bind(bound, &places, limits);
            // A cgroup for processor time is made without a bound, too: one may be set later.
            if let Err(not_kept) = bind
                && (bound != Bound::Processor || limits.cpu.is_some())
            {
                missing.push(not_kept);
            }
        }
        (cgroups, missing)
    }

    /// Sets a bound in the hierarchy that has its controller.
    fn bind(&mut self, bound: Bound, places: &[Place], limits: &CgroupLimits) -> Result<(), MissingBound> {
        let (version, parent) = hierarchy(bound, places)?;
        // Another mount may hide the hierarchy.
        if !parent.join("cgroup.procs").exists() {
            let reason = format!("{}: this is no cgroup", parent.display());
            return Err(MissingBound::new(bound, reason, MOUNT_THEM));
        }
        let remedy = match version {
            Version::One => "run the agent as root",
            Version::Two => {
                "run the agent as root, or in a cgroup that is delegated to its user (systemd-run --user --scope -p \
                 Delegate=yes)"
            }
        };
        let bind = self.bind_below(bound, version, &parent, limits);
        bind.map_err(|reason| MissingBound::new(bound, reason, remedy))
    }

    fn bind_below(
        &mut self,
        bound: Bound,
        version: Version,
        parent: &Path,
        limits: &CgroupLimits,
    ) -> Result<(), String> {
        let directory = parent.join(name(std::process::id()));
        if !self.directories.contains(&directory) {
            remove_left(parent);
            fs::create_dir(&directory).map_err(|error| at(&directory, error))?;
            self.directories.push(directory.clone());
        }
        let enabled = if version == Version::Two { enable(bound, parent) } else { Ok(()) };
        let written = write_files(&directory, bound.files(version, limits).iter());
        // Files are missing because the controller was not enabled.
        written.map_err(|reason| enabled.err().unwrap_or(reason))
    }

    /// Moves a process without others into the cgroups.
    ///
    /// # Errors
    /// The system refuses it in one of the hierarchies. The bounds of the others hold.
    pub fn add(&self, process: Pid) -> io::Result<()> {
        let mut all = Ok(());
        for directory in &self.directories {
            // One that fails does not take the bounds of the others away.
            let moved = fs::write(directory.join("cgroup.procs"), process.as_raw_nonzero().to_string());
            all = all.and(moved);
        }
        all
    }
}

/// The cgroups that a guard has made, for the process that started it.
#[derive(Debug)]
pub struct GuardedCgroups {
    memory: Option<(Version, PathBuf)>,
    processor: Option<(Version, PathBuf)>,
}

impl GuardedCgroups {
    /// Finds the cgroups of a guard that this process started.
    #[must_use]
    pub fn of(guard: u32) -> Self {
        let places = own_places();
        let found = |bound| {
            let (version, parent) = hierarchy(bound, &places).ok()?;
            Some((version, parent.join(name(guard)))).filter(|(_, directory)| directory.is_dir())
        };
        Self { memory: found(Bound::Memory), processor: found(Bound::Processor) }
    }

    /// Changes the bounds of memory and processor time while the container runs; those that the host does not keep, it was
    /// told of at its start. The number of processes is bound in other ways, too, and stays.
    ///
    /// # Errors
    /// The system refuses it: the container may hold more memory than it is to have.
    pub fn bind(&self, limits: &CgroupLimits) -> Result<(), String> {
        if let Some((version, directory)) = &self.memory {
            let files = Bound::Memory.files(*version, limits);
            // Of version 1, one file bounds the sum with swap, and is never below the other one: a larger bound is written
            // in the other order.
            write_files(directory, files.iter()).or_else(|_| write_files(directory, files.iter().rev()))?;
        }
        if let Some((version, directory)) = &self.processor {
            write_files(directory, Bound::Processor.files(*version, limits).iter())?;
        }
        Ok(())
    }

    /// Returns the bytes of memory that the container holds, without files that the kernel can drop; none on a host that
    /// does not count them.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        let (version, directory) = self.memory.as_ref()?;
        let (used, files) = match version {
            Version::Two => ("memory.current", "inactive_file"),
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
        };
        let used: u64 = fs::read_to_string(directory.join(used)).ok()?.trim().parse().ok()?;
        let counted = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
        Some(used.saturating_sub(field(&counted, files).unwrap_or_default()))
    }

    /// Returns the processor time that the container has used, in microseconds; none on a host that does not count it.
    #[must_use]
    pub fn cpu_us(&self) -> Option<u64> {
        let (version, directory) = self.processor.as_ref()?;
        match version {
            Version::Two => field(&fs::read_to_string(directory.join("cpu.stat")).ok()?, "usage_usec"),
            Version::One => {
                let nanoseconds = fs::read_to_string(directory.join("cpuacct.usage")).ok()?;
                Some(nanoseconds.trim().parse::<u64>().ok()? / 1_000)
            }
        }
    }
}

/// Returns the number of a line `NAME NUMBER`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Returns the name of a guard's cgroups.
fn name(guard: u32) -> String {
    format!("{PREFIX}{guard}")
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let until = Instant::now() + REMOVAL_TIME;
        for directory in &self.directories {
            // Version 2 alone has it; the processes have ended before.
            let _ = write_present(&directory.join("cgroup.kill"), "1");
            while let Err(error) = fs::remove_dir(directory) {
                if error.kind() == io::ErrorKind::NotFound {
                    break;
                }
                if Instant::now() > until {
                    tracing::warn!("{}: a cgroup cannot be removed: {error}", directory.display());
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // Those of a guard that was killed may have had processes when the next container began.
        for parent in self.directories.iter().filter_map(|directory| directory.parent()) {
            remove_left(parent);
        }
    }
}

/// Removes the cgroups of guards that were killed. Those with processes stay.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let guard = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        // This process has made none there yet: one with its number is of an earlier process.
        let is_left =
            |guard: u32| guard == std::process::id() || !Path::new(&format!("/proc/{guard}")).exists();
        if guard.is_some_and(is_left) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the own cgroup of each hierarchy that is mounted.
fn places(own: &str, mounts: &str) -> Vec<Place> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let controllers: Vec<String> =
            controllers.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let version = if controllers.is_empty() { Version::Two } else { Version::One };
        for mount in mounts.lines() {
            let Some((left, right)) = mount.split_once(" - ") else { continue };
            let mut right = right.split(' ');
            let (kind, options) = (right.next(), right.nth(1).unwrap_or_default());
            let is_it = match version {
                Version::Two => kind == Some("cgroup2"),
                Version::One => {
                    kind == Some("cgroup")
                        && controllers.iter().all(|it| options.split(',').any(|option| option == it))
                }
            };
            let mut left = left.split(' ').skip(3);
            let (Some(root), Some(at)) = (left.next(), left.next()) else { continue };
            // A path that is not below the mount's root is not shown by it.
            let below = if root == "/" { Some(path) } else { path.strip_prefix(root) };
            if let Some(below) = below.filter(|_| is_it) {
                let top = PathBuf::from(at);
                let directory = top.join(below.trim_start_matches('/'));
                found.push(Place { version, controllers, directory, top });
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
