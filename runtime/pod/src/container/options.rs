//! The settings of a container.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    net::{IpAddr, SocketAddr},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::error::ContainerError;

/// The most layers of an image: the kernel takes more, but not their names on one page.
const MAX_LAYERS: usize = 128;

/// The most mounts: charms have a few storages.
const MAX_MOUNTS: usize = 64;

/// The most ports that lead to WebAssembly workloads: a charm has 16 containers and workloads.
const MAX_FORWARDED_PORTS: usize = 16;

/// The most bytes of a path that the kernel takes.
const MAX_TARGET: usize = 4_096;

/// The most bytes of a host's name (RFC 1123 and the kernel).
const MAX_HOST_NAME: usize = 63;

/// The settings of a container.
#[derive(Debug)]
pub struct ContainerOptions {
    /// The path of the API's socket; none: no socket has a path.
    pub socket: Option<PathBuf>,
    /// The socket to the keeper that started the pod, which brings its streams. The container ends with it.
    pub keeper: Option<UnixStream>,
    /// A file that the keeper has locked. The guard, the pod's process and the init hold it until they end, and the init ends
    /// after all processes of the workload, which do not have it.
    pub lock: Option<OwnedFd>,
    /// An address for the endpoints that are open to all, without a right to anything else.
    pub http: Option<SocketAddr>,
    /// The directories with the image's files, the lowest layer first. They are not written to.
    pub layers: Vec<PathBuf>,
    /// Directories of the host in the container, such as storage.
    pub mounts: Vec<MountedDirectory>,
    /// The name of the host that the workload sees.
    pub host_name: String,
    /// Further lines of `/etc/hosts`.
    pub hosts: Vec<(IpAddr, String)>,
    /// The servers of names in `/etc/resolv.conf`.
    pub name_servers: Vec<IpAddr>,
    /// The image's environment, which each process gets unless its own has the variable.
    pub environment: BTreeMap<String, String>,
    /// A file with the owners and modes of directories and files of the image: records of mode (octal), user, group and
    /// path, with spaces between them, each ended by a null byte. Root owns all files without one.
    pub owners: Option<PathBuf>,
    /// The user and the group of what names none; root by default.
    pub user: Option<ContainerUser>,
    /// The first of the 1,048,576 user and group ids of the container, if this process may give any. Free ones by default.
    pub first_id: Option<u32>,
    /// The directory of the network that the containers of one unit share, and their users with it. It is made if it is
    /// missing. None: the container has its own.
    pub unit_network: Option<PathBuf>,
    /// The ports of the unit's network that lead to WebAssembly workloads of the unit, by the keeper. Only a network of the
    /// unit has some.
    pub forwarded_ports: BTreeSet<u16>,
    /// The bounds of the workload.
    pub limits: ContainerLimits,
    /// True if the container is not started on a host that lacks a part of the confinement.
    pub require_confinement: bool,
    /// The program of the pod's process.
    pub program: ContainerProgram,
}

/// A directory of the host in a container. The host's root, or else the guard's user, is the container's root there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedDirectory {
    /// The absolute path of the directory on the host.
    pub source: PathBuf,
    /// The absolute path in the container. Missing directories are made.
    pub target: String,
    /// The use that a workload can make of it.
    pub access: MountAccess,
}

/// The use that a workload can make of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
    /// It reads and writes.
    ReadWrite,
    /// It reads alone.
    ReadOnly,
}

/// The user and the group of processes that name none, and of new files that the API is given no owner for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContainerUser {
    /// The number of the user in the container.
    pub user_id: u32,
    /// The number of the group in the container.
    pub group_id: u32,
}

/// The bounds of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContainerLimits {
    /// The most bytes of memory of all processes, files in memory included.
    pub memory: u64,
    /// The most bytes of new and changed files. They are in memory.
    pub disk: u64,
    /// The most processes and threads.
    pub processes: u32,
    /// The most processor time, in thousandths of a processor; none for all.
    pub cpu: Option<u32>,
}

impl MountAccess {
    /// Returns the attributes of a mount: it has no devices, and gives nobody rights.
    pub(super) fn attributes(self) -> u64 {
        let always = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        match self {
            Self::ReadWrite => always,
            Self::ReadOnly => always | libc::MOUNT_ATTR_RDONLY,
        }
    }
}

impl Default for ContainerLimits {
    fn default() -> Self {
        Self { memory: 1 << 30, disk: 512 << 20, processes: 1_024, cpu: None }
    }
}

/// A program that calls [`run_contained`](super::run_contained) with its last argument.
#[derive(Debug, Clone)]
pub struct ContainerProgram {
    /// The path of the program.
    pub path: PathBuf,
    /// The arguments before the last one.
    pub arguments: Vec<OsString>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl ContainerOptions {
    /// Refuses settings that no container can have.
    pub(super) fn check(&self) -> Result<(), ContainerError> {
        let wrong = |text: String| Err(ContainerError::Options(text));
        if self.layers.is_empty() || self.layers.len() > MAX_LAYERS {
            return wrong(format!("a container has 1 to {MAX_LAYERS} layers, not {}", self.layers.len()));
        }
        for layer in &self.layers {
            if !layer.is_absolute() || !layer.is_dir() {
                return wrong(format!("{}: not an absolute path of a directory", layer.display()));
            }
        }
        if self.mounts.len() > MAX_MOUNTS {
            return wrong(format!("a container has at most {MAX_MOUNTS} mounts, not {}", self.mounts.len()));
        }
        for MountedDirectory { source, target, .. } in &self.mounts {
            if !source.is_absolute() || !source.is_dir() {
                return wrong(format!("{}: not an absolute path of a directory", source.display()));
            }
            let mut parts = target.split('/').filter(|part| !part.is_empty());
            let is_path = target.starts_with('/')
                && target.len() < MAX_TARGET
                && !target.contains('\0')
                && !target.split('/').any(|part| part == ".." || part == ".");
            if !is_path || matches!(parts.next(), None | Some("proc" | "sys" | "dev")) {
                return wrong(format!("{target:?} is no path of a container for a mount"));
            }
        }
        if let Some(owners) = self.owners.as_ref().filter(|owners| !owners.is_file()) {
            return wrong(format!("{}: no file of owners", owners.display()));
        }
        if self.forwarded_ports.len() > MAX_FORWARDED_PORTS {
            let number = self.forwarded_ports.len();
            return wrong(format!(
                "a unit's network forwards at most {MAX_FORWARDED_PORTS} ports, not {number}"
            ));
        }
        if self.forwarded_ports.contains(&0) {
            return wrong("port 0 cannot be forwarded".to_owned());
        }
        if self.unit_network.is_none() && !self.forwarded_ports.is_empty() {
            return wrong("ports are forwarded in the network of a unit alone".to_owned());
        }
        for name in [&self.host_name].into_iter().chain(self.hosts.iter().map(|(_, name)| name)) {
            let is_name = !name.is_empty()
                && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'.'))
                && !name.starts_with(['-', '.']);
            if !is_name || name.len() > MAX_HOST_NAME {
                return wrong(format!("{name:?} is no name of a host"));
            }
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return wrong(format!("{name:?} is no variable of an environment"));
            }
        }
        let ContainerLimits { memory, disk, processes, cpu } = self.limits;
        if memory < 4 << 20 || disk < 1 << 20 || processes < 4 || cpu.is_some_and(|cpu| cpu < 10) {
            return wrong(
                "a container needs at least 4 MiB of memory, 1 MiB of disk, 4 processes and 0.01 processors"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
