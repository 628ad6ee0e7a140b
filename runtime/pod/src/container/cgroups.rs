//! The cgroups of a container: its bounds of memory, processes and processor time.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::Pid;

use super::{gap::Gap, options::ContainerLimits};

/// The begin of the names of cgroups. The guard's process follows.
const PREFIX: &str = "periapt-container-";

/// The period of processor time, in microseconds: the kernel's own default.
const PERIOD: u64 = 100_000;

/// The time in which a cgroup without processes can be removed.
const REMOVAL_TIME: Duration = Duration::from_secs(5);

/// A kind of bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Memory,
    Processes,
    Processor,
}

impl Bound {
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
    fn files(self, of: Version, limits: &ContainerLimits) -> Vec<(&'static str, String, bool)> {
        let ContainerLimits { memory, processes, cpu, .. } = limits;
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
                quota.iter().map(|quota| ("cpu.max", format!("{quota} {PERIOD}"), false)).collect()
            }
            (Self::Processor, Version::One) => quota
                .iter()
                .flat_map(|quota| {
                    let period = ("cpu.cfs_period_us", PERIOD.to_string(), false);
                    [period, ("cpu.cfs_quota_us", quota.to_string(), false)]
                })
                .collect(),
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
pub(super) struct Cgroups {
    directories: Vec<PathBuf>,
}

impl Cgroups {
    /// Makes the cgroups, and says which bounds the host does not keep.
    pub(super) fn create(limits: &ContainerLimits) -> (Self, Vec<Gap>) {
        let places = places(
            &fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
            &fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
        );
        let mut cgroups = Self::default();
        let mut gaps = Vec::new();
        for bound in [Bound::Memory, Bound::Processes, Bound::Processor] {
            if bound == Bound::Processor && limits.cpu.is_none() {
                continue;
            }
            if let Err(reason) = cgroups.bind(bound, &places, limits) {
                gaps.push(Gap::new(bound.shown(), reason));
            }
        }
        (cgroups, gaps)
    }

    /// Sets a bound in the hierarchy that has its controller.
    fn bind(&mut self, bound: Bound, places: &[Place], limits: &ContainerLimits) -> Result<(), String> {
        let controller = bound.controller();
        let first = places.iter().find(|place| place.controllers.iter().any(|it| it == controller));
        let (version, parent) = match first {
            Some(place) => (Version::One, place.directory.clone()),
            None => {
                let place = places.iter().find(|place| place.version == Version::Two);
                let place = place
                    .ok_or_else(|| format!("this host has no cgroups with the controller {controller}"))?;
                // The own cgroup has processes: cgroups below it have no bounds, unless it is the host's root, which alone
                // has no type. A process is in one cgroup: all bounds are in one place.
                let parent = match place.directory.parent() {
                    Some(beside) if place.directory != place.top => beside.to_owned(),
                    _ if place.top.join("cgroup.type").exists() => {
                        return Err(format!(
                            "{}: has processes, so that cgroups below it have no bounds; run in a cgroup below it",
                            place.top.display()
                        ));
                    }
                    _ => place.directory.clone(),
                };
                (Version::Two, parent)
            }
        };
        let remedy = match version {
            Version::One => "run as root",
            Version::Two => {
                "run as root, or in a cgroup that is delegated to this user (systemd-run --user --scope -p Delegate=yes)"
            }
        };
        self.bind_below(bound, version, &parent, limits).map_err(|reason| format!("{reason}; {remedy}"))
    }

    fn bind_below(
        &mut self,
        bound: Bound,
        version: Version,
        parent: &Path,
        limits: &ContainerLimits,
    ) -> Result<(), String> {
        let at = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let directory = parent.join(format!("{PREFIX}{}", std::process::id()));
        if !self.directories.contains(&directory) {
            remove_left(parent);
            fs::create_dir(&directory).map_err(|error| at(&directory, error))?;
            self.directories.push(directory.clone());
        }
        if version == Version::Two {
            // It has them already, or this fails, and so do the files below.
            let _ = fs::write(parent.join("cgroup.subtree_control"), format!("+{}", bound.controller()));
        }
        for (file, value, may_be_missing) in bound.files(version, limits) {
            let file = directory.join(file);
            if may_be_missing && !file.exists() {
                continue;
            }
            // Without O_CREAT, so that a missing controller is an error of the file.
            let written = fs::OpenOptions::new().write(true).open(&file).and_then(|mut file| {
                use io::Write as _;
                file.write_all(value.as_bytes())
            });
            written.map_err(|error| at(&file, error))?;
        }
        Ok(())
    }

    /// Moves a process without others into the cgroups.
    pub(super) fn add(&self, process: Pid) -> io::Result<()> {
        let mut all = Ok(());
        for directory in &self.directories {
            // One that fails does not take the bounds of the others away.
            let moved = fs::write(directory.join("cgroup.procs"), process.as_raw_nonzero().to_string());
            all = all.and(moved);
        }
        all
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let until = Instant::now() + REMOVAL_TIME;
        for directory in &self.directories {
            // Version 2 alone has it; the processes have ended before.
            let _ = fs::write(directory.join("cgroup.kill"), "1");
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
mod tests {
    use super::*;

    fn shown(own: &str, mounts: &str) -> Vec<(Version, String)> {
        let places = places(own, mounts).into_iter();
        places.map(|it| (it.version, it.directory.display().to_string())).collect()
    }

    #[test]
    fn the_own_cgroup_is_found_in_both_versions_and_through_a_part_of_a_hierarchy() {
        let two = "30 20 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            shown("0::/user.slice/own.scope\n", two),
            [(Version::Two, "/sys/fs/cgroup/user.slice/own.scope".to_owned())]
        );
        let one = "31 20 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                   32 20 0:28 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                   33 20 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(
            shown("8:pids:/a\n7:memory:/docker/x/y\n6:cpu,cpuacct:/\n5:freezer:/\nbroken", one),
            [
                (Version::One, "/sys/fs/cgroup/pids/a".to_owned()),
                (Version::One, "/sys/fs/cgroup/memory/y".to_owned()),
                (Version::One, "/sys/fs/cgroup/cpu,cpuacct/".to_owned()),
            ]
        );
        assert_eq!(shown("7:memory:/elsewhere\n", one), []);
    }

    #[test]
    fn a_host_without_cgroups_is_told_for_each_bound() {
        let mut cgroups = Cgroups::default();
        let limits = ContainerLimits::default();
        let refused = cgroups.bind(Bound::Memory, &[], &limits).unwrap_err();
        assert!(refused.contains("no cgroups with the controller memory"), "{refused}");
        assert!(cgroups.directories.is_empty());
    }
}
