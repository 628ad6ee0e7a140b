//! The process of a WebAssembly workload.
//!
//! A pod starts this program once more for each workload (`docs/decisions/0086-*`), with an order
//! ([`periapt_helper::WorkloadOrder`]) and, for a server, with its listening socket as standard input
//! ([`run_workload`]). The process binds its limits and raises its fence before it compiles a byte of the component,
//! and ends with the pod. [`serve`] answers the connections of a server: each byte that a client sends is untrusted.

mod calls;
mod listener;
mod log;
mod process;
mod serve;

pub use listener::Listener;
pub use process::{WorkloadError, run_workload};
pub use serve::{serve, serve_stream};
