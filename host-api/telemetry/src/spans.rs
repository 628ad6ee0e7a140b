//! The vocabulary of spans. A span is recorded only where spans are exported: elsewhere it costs one atomic load.
//!
//! ```text
//! verb                            the command line
//!   request                       the controller answers a request
//!     command                     one command, from the queue to its answer
//!       batch                     the commands that were evaluated together with it
//!         commit                  the store made the batch durable
//!       runner                    a runner applies the frame that brings the command's revision
//!         unit                    a unit that the frame woke, until it rests
//!           operation             one run of a hook or an action, until it is settled
//!             hook                the charm's code in the sandbox
//!             command             the hook's commit, and so on
//! ```

/// The target of all spans that are exported.
pub const TARGET: &str = "periapt_trace";

/// A verb of the command line.
pub const VERB: &str = "verb";
/// A request, from its head to the head of its answer.
pub const REQUEST: &str = "request";
/// A command, from the queue to its answer.
pub const COMMAND: &str = "command";
/// The commands that are evaluated and written together.
pub const BATCH: &str = "batch";
/// The store's write of a batch, with its sync.
pub const COMMIT: &str = "commit";
/// A runner applies a frame, and wakes the units that it concerns.
pub const RUNNER: &str = "runner";
/// A unit with something to do, until it rests.
pub const UNIT: &str = "unit";
/// One run of a hook or an action, from its turn until its commit is settled.
pub const OPERATION: &str = "operation";
/// The charm's code in the sandbox.
pub const HOOK: &str = "hook";

/// All names.
pub const NAMES: [&str; 9] = [VERB, REQUEST, COMMAND, BATCH, COMMIT, RUNNER, UNIT, OPERATION, HOOK];

/// The names of the spans that a runner sends.
pub const OF_RUNNERS: [&str; 4] = [RUNNER, UNIT, OPERATION, HOOK];

/// The attributes of these spans.
pub const ATTRIBUTES_OF_RUNNERS: [&str; 10] =
    ["model", "unit", "operation", "event", "attempt", "outcome", "fuel", "memory", "wall_us", "revision"];

/// Converts a field's number to the form that exporters keep as a number. They write other integers as text. Numbers above
/// `i64::MAX` become `i64::MAX`.
pub fn number(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// Starts a span of the vocabulary. The first argument is its name, a constant of [`spans`](crate::spans); the rest are
/// fields, and before them `parent: SPAN` if its parent is not the span that the code runs in.
#[macro_export]
macro_rules! span {
    (parent: $parent:expr, $name:expr $(, $($fields:tt)*)?) => {
        ::tracing::debug_span!(target: $crate::spans::TARGET, parent: $parent, $name $(, $($fields)*)?)
    };
    ($name:expr $(, $($fields:tt)*)?) => {
        ::tracing::debug_span!(target: $crate::spans::TARGET, $name $(, $($fields)*)?)
    };
}
