//! Errors of hooks, in words for charm authors.

use std::fmt;

/// The failure of a hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HookError {
    /// The kind, for programs.
    pub kind: HookErrorKind,
    /// The message for author and operator, of one or a few lines.
    pub message: String,
    /// The exit code that the handler reported; 1 for any other failure.
    pub code: i32,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookErrorKind {
    /// The handler returned an error.
    Failed,
    /// The charm's code panicked.
    Panicked,
    /// The charm's code trapped.
    Trapped,
    /// The charm's code exited instead of returning, with any code.
    Exited,
    /// The call stack overflowed.
    StackOverflow,
    /// The hook exceeded its memory limit.
    OutOfMemory,
    /// The hook exceeded its CPU budget.
    CpuBudget,
    /// The hook exceeded its wall budget.
    TimedOut,
    /// The hook exceeded its number of host calls.
    HostCalls,
    /// The hook exceeded another limit: handles, bytes of one call, tables.
    Limit,
    /// The runner interrupted the hook.
    Interrupted,
    /// The hook could not start.
    NotStarted,
}

impl HookErrorKind {
    /// Returns the kind's stable name.
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

/// The pool of hooks in flight is full. The hook has not started; the caller starts it again when another hook
/// has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many hooks in flight")]
pub struct Busy;

/// An error of preparing a component.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The component has unknown imports, no handler, or types that differ from the contract's.
    #[error("the component does not fit the sandbox: {0:#}")]
    Unfit(wasmtime::Error),
    /// The charm's files cannot be listed.
    #[error("the charm's files cannot be read")]
    Files(#[source] std::io::Error),
}
