//! Containers: the processes of a pod in namespaces of their own, on the files of an image.
//!
//! Three processes take part. The *guard* is started by an agent, and has the rights of its user. It makes the
//! namespaces, the mapping of users and the cgroups, listens on the pod's socket, and removes all of it at the end. It
//! reads no byte of a charm, an image or a workload. The *pod's process* is started by the guard inside of the
//! namespaces, apart from that of processes. It mounts the container's files, gives up its rights, and then serves the
//! API. The *init* is its child and the first process in the container's namespace of processes. It starts, signals and
//! reaps the workload's processes by order of the pod's process. The kernel ends all others with it.

mod calls;
mod driver;
mod enter;
mod error;
mod gap;
mod gate;
mod guard;
mod ids;
mod init;
mod inside;
mod options;
mod order;
mod owners;
mod privileges;
mod stage;
mod syscalls;
mod unit_network;
mod wire;

pub use enter::enter_users_of_containers;
pub use error::ContainerError;
pub use gap::Gap;
pub use guard::run_in_container;
pub use inside::run_contained;
pub use options::{
    ContainerLimits, ContainerOptions, ContainerProgram, ContainerUser, MountAccess, MountedDirectory,
};
