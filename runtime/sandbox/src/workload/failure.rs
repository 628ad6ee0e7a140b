//! The reasons why a workload failed, in words for its author.

use std::time::Duration;

use wasmtime::{PoolConcurrencyLimitError, Trap};
use wasmtime_wasi::I32Exit;

use super::memory::WorkloadLimiter;
use crate::diagnosis::{place, seconds};

/// The most bytes of a reason.
const LONGEST: usize = 2 << 10;

/// A request that a workload did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// The request is not one that a guest can be given.
    #[error("{0}")]
    Invalid(&'static str),
    /// The request's body is too large. Holds the limit, in bytes.
    #[error("the body of the request has more than {0} bytes")]
    TooLarge(u64),
    /// All instances are busy, or have all memory.
    #[error("too many requests at a time")]
    Busy,
    /// The request took too long. Holds the limit.
    #[error("timed out: a request may take {}", seconds(*.0))]
    TimedOut(Duration),
    /// The guest failed.
    #[error("{0}")]
    Failed(String),
}

/// The bounds of an instance, as a reason names them.
pub(super) struct Bounds<'a> {
    pub(super) limiter: &'a WorkloadLimiter,
    /// The CPU time; none for a command.
    pub(super) cpu: Option<Duration>,
}

/// Returns true if the error is no fault of the guest: other instances have what it would need.
pub(super) fn is_busy(error: &wasmtime::Error, limiter: &WorkloadLimiter) -> bool {
    error.is::<PoolConcurrencyLimitError>() || (limiter.is_crowded() && !error.is::<I32Exit>())
}

/// Returns the reason of an error of the engine.
pub(super) fn reason(error: &wasmtime::Error, bounds: &Bounds<'_>) -> String {
    let mut text = words(error, bounds);
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

fn words(error: &wasmtime::Error, bounds: &Bounds<'_>) -> String {
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return format!("it exited with code {code}");
    }
    if let (Some(Trap::OutOfFuel), Some(cpu)) = (error.downcast_ref(), bounds.cpu) {
        return format!("cpu budget exceeded: a request may compute for {}{}", seconds(cpu), place(error));
    }
    if bounds.limiter.refused() {
        let limit = bounds.limiter.limit() >> 20;
        return format!("out of memory: an instance may use {limit} MiB{}", place(error));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => format!("stack overflow: too many nested calls{}", place(error)),
        Some(Trap::UnreachableCodeReached) => format!("it aborted{}", place(error)),
        Some(trap) => {
            format!("trapped: {}{}", trap.to_string().trim_start_matches("wasm trap: "), place(error))
        }
        None => format!("{}{}", error.root_cause(), place(error)),
    }
}
