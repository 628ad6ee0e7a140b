//! How a hook fails, in words that its author understands.

use std::fmt;

/// Why a hook failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HookError {
    /// The kind, for programs.
    pub kind: HookErrorKind,
    /// What author and operator read; one line, or a few.
    pub message: String,
    /// What the handler failed with, as a process's exit code; 1 where it had no say.
    pub code: i32,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookErrorKind {
    /// The handler said so itself.
    Failed,
    /// The charm's code panicked.
    Panicked,
    /// It did what WebAssembly forbids.
    Trapped,
    /// It ended its process instead of returning, with whatever code.
    Exited,
    /// It recursed too deeply.
    StackOverflow,
    /// It needed more memory than it may have.
    OutOfMemory,
    /// It computed longer than it may.
    CpuBudget,
    /// It took longer than it may.
    TimedOut,
    /// It called the host more often than it may.
    HostCalls,
    /// It passed another bound: handles, bytes in one call, tables.
    Limit,
    /// It was stopped from outside.
    Interrupted,
    /// It could not be started.
    NotStarted,
}

impl HookErrorKind {
    /// A stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::Trapped => "trapped",
            Self::Exited => "exited",
            Self::StackOverflow => "stack-overflow",
            Self::OutOfMemory => "out-of-memory",
            Self::CpuBudget => "cpu-budget",
            Self::TimedOut => "timed-out",
            Self::HostCalls => "host-calls",
            Self::Limit => "limit",
            Self::Interrupted => "interrupted",
            Self::NotStarted => "not-started",
        }
    }
}

impl fmt::Display for HookErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl HookError {
    pub(crate) fn new(kind: HookErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: 1 }
    }
}

/// As many hooks are in flight as the pool has room for. That says nothing of the hook: nothing of it ran, and
/// the caller starts it again when another has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many hooks in flight")]
pub struct Busy;

/// Why a component cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It imports what the sandbox does not offer, exports no handler, or has other types than the contract.
    #[error("the component does not fit the sandbox: {0:#}")]
    Unfit(wasmtime::Error),
    /// The charm's files cannot be looked through.
    #[error("the charm's files cannot be read")]
    Files(#[source] std::io::Error),
}
