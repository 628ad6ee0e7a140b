//! The order of the guard to the pod's process, and the words between them.

use std::{collections::BTreeMap, os::fd::RawFd, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{gap::Gap, options::ContainerLimits};

/// The last argument of the pod's process. Its descriptors are open in that process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Order {
    /// The guard's process.
    pub(super) guard: i32,
    /// The guard's user.
    pub(super) owner: u32,
    /// The socket to the guard.
    pub(super) control: RawFd,
    /// The listener of the API.
    pub(super) listener: RawFd,
    /// The listener of what is open to all.
    pub(super) http: Option<RawFd>,
    /// The layers, the lowest first.
    pub(super) layers: Vec<Layer>,
    /// The file of owners.
    pub(super) owners: Option<RawFd>,
    /// True if the container has more users than one.
    pub(super) has_users: bool,
    /// The name of the host.
    pub(super) host_name: String,
    /// The content of `/etc/hosts`.
    pub(super) hosts: String,
    /// The content of `/etc/resolv.conf`.
    pub(super) resolv: String,
    /// The image's environment.
    pub(super) environment: BTreeMap<String, String>,
    /// The bounds.
    pub(super) limits: ContainerLimits,
    /// True if a gap is an error.
    pub(super) require_confinement: bool,
}

/// The place of a layer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Layer {
    /// A mount whose owners are those of the container.
    Tree(RawFd),
    /// A directory.
    Path(PathBuf),
}

/// A line of the pod's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// The process of the container's init, which waits for its cgroup.
    Init(i32),
    /// The parts of the confinement that are missing inside. The API is served from now on.
    Ready(Vec<Gap>),
    /// The container cannot be set up.
    Failed(String),
}
