//! One hook run, as the charm sees it: it takes a snapshot, answers reads, gathers effects, and returns an
//! outcome. Each behaviour stands here once. Two interfaces lead to it: the typed host functions
//! ([`HookContext`]'s methods) and the argv form ([`HookContext::run_tool`]).
//!
//! The crate is pure: the host (the agent's runner, or a test bench) hands in time, lease and names, and takes
//! early effects out. The guest is untrusted: [`HookLimits`] bounds every text, count and queue.

mod actions;
mod bags;
mod config;
mod context;
mod early;
mod effects;
mod environment;
mod error;
mod events;
mod exec;
mod files;
mod goal_state;
mod identity;
mod leadership;
mod lease;
mod limits;
mod log;
mod network;
mod pebble;
mod ports;
mod recorder;
mod relations;
mod replay;
mod resources;
mod secrets;
mod snapshot;
mod state;
mod status;
mod storage;
mod tools;
mod workloads;

pub use actions::ActionResults;
pub use bags::{BagSelector, OwnBag};
pub use context::{HookContext, HookInputs, HookResults};
pub use error::CallError;
pub use events::{DueCondition, LaterEvent};
pub use exec::ExecFailure;
pub use files::{FileError, FileRequest};
pub use goal_state::{GoalState, GoalStatus};
pub use lease::{CallAnswer, CallTime, HeldLease, LeaseState, MAX_ASKED};
pub use limits::HookLimits;
pub use log::OutputStream;
pub use ports::Ports;
pub use replay::{
    CallDifference, NotReplayable, RecordedBudgets, ReplayableRun, ReplayedCall, ReplayedCalls,
};
pub use resources::ResourceFile;
pub use secrets::{GetMode, IdSeed, NewOwner, SecretInfo, SecretMetadata};
pub use snapshot::ContextError;
pub use status::{ApplicationStatuses, CharmStatus};
pub use storage::MountedStorage;
pub use tools::{HookTool, ToolOutput, hook_tool_names, hook_tools, is_hook_tool};
pub use workloads::{Received, ReplayedAnswer, WorkloadTarget};
