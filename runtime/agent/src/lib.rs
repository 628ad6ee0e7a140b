//! The agent: a *keeper*, the process that holds the connection to the controller, and a *runner* process for each
//! model, which mirrors the model's view, decides what its units do, runs their hooks in the sandbox and commits
//! them (`docs/design/sandbox.md`).
//!
//! The agent keeps no state that matters: kill any part of it at any time, and hooks that had not committed run
//! again. Decisions are taken by `periapt-uniter` and `periapt-hook`; this crate only carries things between
//! them, the sandbox and the controller.

mod clock;
mod helper;
mod host;
mod keeper;
mod options;
mod protocol;
mod runner;

pub use helper::run_compile_helper;
pub use keeper::{AgentError, AgentService, AgentState, DirectoryError, Handle};
pub use options::{ChildProgram, CompileLimits, HookPlaces, Options};
pub use protocol::LinkError;
pub use runner::{RunnerError, run_runner};
