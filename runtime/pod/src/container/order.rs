//! The order of the guard to the pod's process, and the words between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CString, OsStr, OsString},
    io,
    os::{fd::RawFd, unix::ffi::OsStrExt as _},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::{
    calls::Image,
    gap::Gap,
    options::{ContainerLimits, ContainerProgram, ContainerUser, MountAccess},
};

/// The last argument of a process that a guard starts. Its descriptors are open in that process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InsideOrder {
    /// The pod's process.
    Pod(Box<Order>),
    /// The process of the network that the containers of a unit share.
    Network(NetworkOrder),
}

impl InsideOrder {
    /// Returns the program of a process with this order.
    pub(super) fn image(&self, program: &ContainerProgram) -> io::Result<Image> {
        let order = serde_json::to_string(self)?;
        let text = |text: &OsStr| CString::new(text.as_bytes());
        let arguments = [program.path.as_os_str()]
            .into_iter()
            .chain(program.arguments.iter().map(|it| it.as_os_str()))
            .chain([OsStr::new(&order)]);
        let variable = |(name, value): &(OsString, OsString)| {
            let mut all = name.clone();
            all.push("=");
            all.push(value);
            text(&all)
        };
        Ok(Image::new(
            text(program.path.as_os_str())?,
            arguments.map(text).collect::<Result<_, _>>()?,
            program.environment.iter().map(variable).collect::<Result<_, _>>()?,
        ))
    }
}

/// The properties of a unit's network that its containers depend on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct NetworkProperties {
    /// True if its containers have more users than root.
    pub(super) has_more: bool,
    /// True if the owners of files must be shifted to these users.
    pub(super) are_shifted: bool,
    /// The gap of the host that concerns the users; none if it lacks nothing.
    pub(super) gap: Option<Gap>,
    /// The ports that lead to WebAssembly workloads of the unit.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) forwarded: BTreeSet<u16>,
}

/// The order for the process of a unit's network.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct NetworkOrder {
    /// The listener for guards.
    pub(super) listener: RawFd,
    /// The file that it locks.
    pub(super) lock: RawFd,
    /// The properties that its containers depend on.
    pub(super) properties: NetworkProperties,
}

/// The network of a container.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OrderedNetwork {
    /// A network of its own.
    Own,
    /// The network of its unit, whose gate calls other units on this socket; none: it has no gate.
    OfUnit(Option<RawFd>),
}

/// The order for the pod's process.
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
    pub(super) listener: Option<RawFd>,
    /// The socket to the keeper.
    pub(super) keeper: Option<RawFd>,
    /// The file that is locked for as long as the container is there.
    pub(super) lock: Option<RawFd>,
    /// The listener of what is open to all.
    pub(super) http: Option<RawFd>,
    /// The network.
    pub(super) network: OrderedNetwork,
    /// The ports of the network that lead to WebAssembly workloads of the unit.
    pub(super) forwarded: BTreeSet<u16>,
    /// The layers, the lowest first.
    pub(super) layers: Vec<Layer>,
    /// The mounts.
    pub(super) mounts: Vec<OrderedMount>,
    /// The file of owners.
    pub(super) owners: Option<RawFd>,
    /// True if the container has more users than one.
    pub(super) has_users: bool,
    /// The user and the group of what names none.
    pub(super) user: Option<ContainerUser>,
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
    /// The parts of the confinement that the guard has found missing, for the keeper.
    pub(super) gaps: Vec<Gap>,
}

/// A directory of the host in the container.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct OrderedMount {
    /// The place of the directory.
    pub(super) source: Layer,
    /// The path in the container.
    pub(super) target: String,
    /// The use of it.
    pub(super) access: MountAccess,
}

/// The place of a layer, or of another directory.
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
    /// The process of the container's init, which waits for its cgroup. The guard answers with a line: empty, or with a
    /// [`Gap`] as JSON.
    Init(i32),
    /// The parts of the confinement that are missing inside. The API is served from now on.
    Ready(Vec<Gap>),
    /// The container cannot be set up.
    Failed(String),
}
