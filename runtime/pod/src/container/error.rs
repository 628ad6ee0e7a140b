//! Errors of containers.

use std::io;

use super::gap::Gap;
use crate::options::PodError;

/// A container that cannot begin or go on. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The settings are wrong.
    #[error("{0}")]
    Options(String),
    /// The socket or the address cannot be served.
    #[error(transparent)]
    Listen(PodError),
    /// The host lacks a part of the confinement that is required.
    #[error("this host cannot confine a container: {}", shown(.0))]
    Unconfined(Vec<Gap>),
    /// The host has no user namespaces for this user.
    #[error(
        "cannot make a user namespace: {0}; the sysctl user.max_user_namespaces must be greater than 0 and, where they \
         exist, kernel.unprivileged_userns_clone 1 and kernel.apparmor_restrict_unprivileged_userns 0"
    )]
    UserNamespace(#[source] io::Error),
    /// The ids of the container cannot be mapped.
    #[error("cannot map the users of the container: {0}")]
    Ids(String),
    /// The image's files cannot be given to the container's users.
    #[error(
        "{layer}: cannot show these files to the container's users: {source}; this needs Linux 5.19 and a file system \
         with idmapped mounts, such as ext4, xfs, btrfs or (since Linux 6.3) tmpfs"
    )]
    Layer {
        /// The directory.
        layer: String,
        /// The reason.
        source: io::Error,
    },
    /// A part of the set-up failed inside of the namespaces.
    #[error("cannot set up the container: {0}")]
    Inside(String),
    /// The system refuses a part of the set-up.
    #[error("cannot {doing}: {source}")]
    System {
        /// The deed.
        doing: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The network of the unit's containers has ended, and this one with it.
    #[error("the network that the unit's containers share has ended")]
    NetworkEnded,
    /// The pod's process ended by a signal.
    #[error("the pod's process was ended by signal {0}")]
    Killed(i32),
}

impl ContainerError {
    /// Returns a function that makes an error of the system's.
    pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

fn shown(gaps: &[Gap]) -> String {
    gaps.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
