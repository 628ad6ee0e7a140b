//! The process of a pod: Pebble's API on a socket, and the processes, files and probes behind it.
//!
//! The pure core, `periapt-pebble`, decides what a pod does. This crate drives it: one task owns the core
//! (`core`), one thread starts, signals and reaps processes through a [`Driver`] (`driver`), and connections bring
//! requests (`connection`, `api`). Each byte that a client or a workload sends is untrusted: bodies, sessions,
//! connections and queues have bounds, and peers that are slow or silent have time limits.

mod api;
mod authorities;
mod calls;
mod connection;
mod container;
mod core;
mod driver;
mod event;
mod files;
mod keeper;
mod names;
mod network;
mod options;
mod outward;
mod pod;
mod probe;
mod push;
mod session;
mod streams;

pub use container::{
    ContainerError, ContainerLimits, ContainerOptions, ContainerProgram, ContainerUser, Gap, MountAccess,
    MountedDirectory, enter_users_of_containers, run_contained, run_in_container,
};
pub use driver::{
    Driver, DriverKind, Plain, Streams, Terminals, Wasm, WasmListen, WasmOptions, WasmWorkload,
};
pub use files::FileBounds;
pub use options::{PodError, PodOptions};
pub use pod::run;
