//! The places of a pod with WebAssembly workloads.
//!
//! Its process starts those of its workloads, which inherit its fence: what they need before they raise their own, it has,
//! too.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use landlock::{AccessFs, BitFlags, PathFd};

use super::files::{read, write};
use crate::workload::{DirectoryAccess, WorkloadDirectory};

/// The places of a pod with WebAssembly workloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPlaces {
    /// The directory that clients of the pod write and its workloads read. It exists before the fence is raised.
    pub root: PathBuf,
    /// The other directories of its workloads.
    pub directories: Vec<WorkloadDirectory>,
    /// The components of its workloads.
    pub components: Vec<PathBuf>,
    /// The program of its workloads' processes, which is its own.
    pub program: PathBuf,
    /// The sockets that it makes.
    pub sockets: PodSockets,
}

/// The sockets that a pod makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodSockets {
    /// Pairs that are connected to each other. It has no network and connects to no socket of the host.
    Pairs,
    /// Sockets of the host's network too, and listening ones in this directory: a pod that is started by hand.
    OfHost(Option<PathBuf>),
}

/// The files about processes, of which workloads read those about themselves.
const PROCESSES: &str = "/proc";

/// A file that the loader of programs reads.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// The input of services.
const NULL: &str = "/dev/null";

/// The files with authorities of certificates, by which workloads know servers of `https`, as systems name them. None has
/// keys.
const AUTHORITIES: [&str; 11] = [
    "/etc/ssl/certs",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// The files by which the system finds addresses of names.
const NAMES: [&str; 5] =
    ["/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf"];

impl PodPlaces {
    /// Returns true if a process without a capability finds all places: no directory above them is closed to its user.
    pub(super) fn are_reachable(&self) -> bool {
        let directories = self.directories.iter().map(|directory| directory.host.as_path());
        let files = self.components.iter().map(PathBuf::as_path);
        let mut places = directories.chain(files).chain([self.root.as_path()]);
        places.all(|place| {
            !fs::metadata(place).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        })
    }

    /// Returns true if the process may use the host's network.
    pub(super) fn has_network(&self) -> bool {
        self.sockets != PodSockets::Pairs
    }

    /// Returns the paths that the process may open, with their rights.
    pub(super) fn allowed(&self) -> Vec<(PathFd, BitFlags<AccessFs>)> {
        let file: BitFlags<AccessFs> = AccessFs::ReadFile.into();
        let program = AccessFs::ReadFile | AccessFs::Execute;
        let libraries = libraries();
        let mut places: Vec<(&Path, BitFlags<AccessFs>)> = vec![
            (self.root.as_path(), write()),
            (self.program.as_path(), program),
            (Path::new(LOADER_CACHE), file),
            (Path::new(PROCESSES), file),
            (Path::new(NULL), AccessFs::ReadFile | AccessFs::WriteFile),
        ];
        places.extend(self.directories.iter().map(|WorkloadDirectory { host, access, .. }| {
            let access = match access {
                DirectoryAccess::ReadOnly => read(),
                DirectoryAccess::ReadWrite => write(),
            };
            (host.as_path(), access)
        }));
        places.extend(self.components.iter().map(|component| (component.as_path(), file)));
        places.extend(AUTHORITIES.map(|path| (Path::new(path), read())));
        places.extend(libraries.iter().map(|directory| (directory.as_path(), program)));
        if let PodSockets::OfHost(directory) = &self.sockets {
            places.extend(NAMES.map(|path| (Path::new(path), file)));
            let sockets = AccessFs::MakeSock | AccessFs::RemoveFile;
            places.extend(directory.iter().map(|directory| (directory.as_path(), sockets)));
        }
        // A path that does not exist cannot be opened either.
        let open =
            |(path, access): (&Path, BitFlags<AccessFs>)| PathFd::new(path).ok().map(|place| (place, access));
        places.into_iter().filter_map(open).collect()
    }
}

/// Returns the directories of the loader and the libraries that this process was started with. Processes of the same program
/// are started with them, also once the system has replaced one of these files.
fn libraries() -> BTreeSet<PathBuf> {
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let program = fs::read_link("/proc/self/exe").ok();
    libraries_of(&String::from_utf8_lossy(&maps), program.as_deref())
}

/// Returns the directories of the files with code that a process has mapped, but for its program.
fn libraries_of(maps: &str, program: Option<&Path>) -> BTreeSet<PathBuf> {
    let is_code =
        |line: &&str| line.split_ascii_whitespace().nth(1).is_some_and(|access| access.contains('x'));
    // The fields before the path have no slash.
    let path = |line: &str| line.find('/').and_then(|at| line.get(at..).map(PathBuf::from));
    let files = maps.lines().filter(is_code).filter_map(path);
    let libraries = files.filter(|file| Some(file.as_path()) != program);
    let directories = libraries.filter_map(|file| file.parent().map(Path::to_owned));
    // The root of the host is no directory of libraries.
    directories.filter(|directory| directory.parent().is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_where_code_was_mapped_from() {
        let maps = "\
            55d0-55d1 r--p 00000000 08:01 100    /usr/bin/program\n\
            55d1-55d2 r-xp 00001000 08:01 100    /usr/bin/program\n\
            7f00-7f01 r-xp 00000000 00:00 0 \n\
            7f01-7f02 r-xp 00000000 08:01 200    /usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)\n\
            7f02-7f03 r--p 00000000 08:01 300    /usr/lib/locale/archive\n\
            7f03-7f04 r-xp 00000000 08:01 400    /opt/my libraries/ld.so\n\
            7f04-7f05 r-xp 00000000 08:01 500    /ld.so\n\
            7f05-7f06 r-xp 00000000 00:00 0      [vdso]\n";
        let directories = ["/opt/my libraries", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
        assert_eq!(libraries_of(maps, Some(Path::new("/usr/bin/program"))), BTreeSet::from(directories));
    }
}
