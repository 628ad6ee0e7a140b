//! The agent: a *keeper*, the process with the connection to the controller, and a *runner* process for each
//! model. A runner mirrors the model's view, decides the units' next steps, runs their hooks in the sandbox and
//! commits them (`docs/design/sandbox.md`).
//!
//! The agent keeps no essential state: any of its processes may be killed at any time, and uncommitted hooks run
//! again. `periapt-uniter` and `periapt-hook` make the decisions; this crate connects them to the sandbox and the
//! controller.

mod clock;
mod count;
mod helper;
mod holder;
mod host;
mod keeper;
pub mod metrics;
mod options;
mod pebble_api;
mod protocol;
mod runner;
mod unpack;

pub use count::run_count_helper;
pub use helper::run_compile_helper;
pub use holder::run_holder;
pub use keeper::{
    AgentError, AgentService, AgentState, ControllerProbe, DirectoryError, FirewallError, Handle,
    IdentityError, LeaseKeeper, TooManyRules, end_pods, try_containers, try_firewall,
};
pub use options::{
    ChildProgram, CompileLimits, ContainerDriver, EgressOptions, FirewallOptions, HookCapacity, HostGaps,
    Options, PodDrivers, WorkloadDriver,
};
pub use protocol::LinkError;
pub use runner::{RunnerError, run_runner};
pub use unpack::run_unpack_helper;
