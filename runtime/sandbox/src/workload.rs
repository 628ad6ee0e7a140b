//! Workloads: components that serve HTTP or run for as long as they like, beside the hooks of a charm.
//!
//! They share the engine's settings with hooks and no store: a [`WorkloadEngine`] has a pool, a linker and stores of its
//! own. An HTTP workload gets an instance for each request ([`HttpWorkload`]), a command one for its whole run
//! ([`CommandWorkload`]). A guest has its arguments, its environment, read-only directories and clocks; it has no
//! sockets, and its HTTP requests go where an [`Outbound`] lets them. All guests of a workload together may have a share of
//! the processors.

mod body;
mod command;
mod engine;
mod failure;
mod http;
mod inputs;
mod log;
mod memory;
mod outbound;
mod quota;
mod state;

pub use body::{BodyFailure, ResponseBody};
pub use command::{CommandEnd, CommandWorkload};
pub use engine::{CompiledWorkload, UnfitWorkload, WorkloadEngine, WorkloadPool};
pub use failure::RequestFailure;
pub use http::{HttpWorkload, RequestBudgets};
pub use inputs::{PreopenedDirectory, WorkloadInputs};
pub use log::{LogChunk, WorkloadLog, WorkloadStream};
pub use outbound::{NoOutbound, Outbound, OutboundConnection, OutboundRefused, OutboundTarget};
