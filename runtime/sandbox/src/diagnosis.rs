//! The conversion of engine errors to messages for charm authors.

use std::time::Duration;

use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::{Budgets, HookError, HookErrorKind, fuel, limits, meter::TooManyCalls};

/// The most functions of a backtrace in a message: enough to find the place, and short enough for a status.
const FRAMES: usize = 6;

/// The most bytes of a message, which goes into a status and into the journal.
const MESSAGE: usize = 2 << 10;

/// The facts beside the error.
pub(crate) struct Evidence<'a> {
    pub(crate) budgets: &'a Budgets,
    /// True if the limiter has refused an allocation.
    pub(crate) memory_refused: bool,
    pub(crate) memory_limit: u64,
    /// The end of the hook's stderr.
    pub(crate) stderr: &'a str,
    /// True if the charm's code had started.
    pub(crate) started: bool,
}

/// The meaning of an engine error.
#[derive(Debug)]
pub(crate) enum Diagnosis {
    /// The pool is full, which is no failure of the hook.
    Busy,
    /// The hook failed.
    Failed(HookError),
}

/// Determines why a hook ended.
pub(crate) fn diagnose(error: &wasmtime::Error, evidence: &Evidence<'_>) -> Diagnosis {
    if error.is::<PoolConcurrencyLimitError>() {
        return Diagnosis::Busy;
    }
    if let Some(I32Exit(code)) = error.downcast_ref() {
        // An early exit fails even with code 0: the handler did not finish, so its effects must not be
        // committed.
        return failed(HookErrorKind::Exited, exited(*code, evidence.stderr));
    }
    if let Some(TooManyCalls { limit }) = error.downcast_ref() {
        return failed(HookErrorKind::HostCalls, format!("too many host calls: a hook may make {limit}"));
    }
    if error.downcast_ref() == Some(&Trap::OutOfFuel) {
        let budget = Duration::from_nanos(fuel::nanoseconds(evidence.budgets.fuel));
        let message =
            format!("cpu budget exceeded: a hook may compute for {}{}", seconds(budget), place(error));
        return failed(HookErrorKind::CpuBudget, message);
    }
    if evidence.memory_refused {
        let limit = evidence.memory_limit >> 20;
        return failed(
            HookErrorKind::OutOfMemory,
            format!("out of memory: a hook may use {limit} MiB{}", place(error)),
        );
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            let message = format!("stack overflow: too many nested calls{}", place(error));
            failed(HookErrorKind::StackOverflow, message)
        }
        Some(trap) => match panic_message(evidence.stderr) {
            Some(message) => failed(HookErrorKind::Panicked, format!("panicked: {message}")),
            None => failed(HookErrorKind::Trapped, trapped(*trap, error, evidence.stderr)),
        },
        None if !evidence.started => {
            failed(HookErrorKind::NotStarted, format!("the charm could not be started: {error:#}"))
        }
        None => failed(HookErrorKind::Limit, format!("{}{}", refused(error), place(error))),
    }
}

/// Returns the message for a refusal by the engine or by a host function. The engine has no types for its
/// own bounds, so this function matches their texts. Unknown texts stay as they are.
fn refused(error: &wasmtime::Error) -> String {
    let cause = error.root_cause().to_string();
    if cause.contains("fuel allocated for hostcalls") {
        format!("too large: a call may bring {} MiB", limits::HOST_CALL_BYTES >> 20)
    } else if cause.contains("store handle limit exceeded") {
        format!("too many handles: a hook may hold {}", limits::MAX_HANDLES)
    } else {
        cause
    }
}

/// Returns the error for an exceeded wall budget.
pub(crate) fn timed_out(budgets: &Budgets) -> HookError {
    let message = format!("timed out: a hook may take {}", seconds(budgets.wall));
    HookError::new(HookErrorKind::TimedOut, message)
}

fn failed(kind: HookErrorKind, message: String) -> Diagnosis {
    let end = message.floor_char_boundary(MESSAGE);
    Diagnosis::Failed(HookError::new(kind, message.get(..end).unwrap_or_default()))
}

fn exited(code: i32, stderr: &str) -> String {
    match last_line(stderr) {
        Some(line) => format!("exited with code {code} before its handler returned: {line}"),
        None => format!("exited with code {code} before its handler returned"),
    }
}

fn trapped(trap: Trap, error: &wasmtime::Error, stderr: &str) -> String {
    let what = match trap {
        Trap::UnreachableCodeReached => "aborted".to_owned(),
        trap => trap.to_string().trim_start_matches("wasm trap: ").to_owned(),
    };
    let said = last_line(stderr).map(|line| format!("; its last words: {line}"));
    format!("trapped: {what}{}{}", place(error), said.unwrap_or_default())
}

/// Returns ` in INNER, called by OUTER`, if the charm has names of functions.
pub(crate) fn place(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let mut names: Vec<_> = backtrace
        .frames()
        .iter()
        .filter_map(|frame| frame.func_name())
        // The alternate form leaves out the hash that the compiler adds.
        .map(|name| format!("{:#}", rustc_demangle::demangle(name)))
        .skip_while(|name| is_machinery(name))
        .collect();
    // A recursive function is named once.
    names.dedup();
    names.truncate(FRAMES);
    if names.is_empty() { String::new() } else { format!(" in {}", names.join(", called by ")) }
}

/// Returns true for a function of a standard library that leads to a trap, which says nothing to the
/// author.
fn is_machinery(name: &str) -> bool {
    ["abort", "__rust", "std::", "core::", "alloc::", "<alloc::", "<core::", "<std::"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Extracts the panic message of Rust or Go from stderr.
fn panic_message(stderr: &str) -> Option<String> {
    let mut lines = stderr.lines();
    let (place, goes_on) = lines.find_map(|line| match line.split_once(" panicked at ") {
        Some((_, place)) => Some((place.trim_end_matches(':'), true)),
        None => line.strip_prefix("panic: ").map(|text| (text, false)),
    })?;
    if !goes_on {
        return Some(place.to_owned());
    }
    let text: Vec<_> =
        lines.map(str::trim_end).take_while(|line| !line.is_empty() && !line.starts_with("note: ")).collect();
    match text.as_slice() {
        [] => Some(place.to_owned()),
        text => Some(format!("{} (at {place})", text.join("\n"))),
    }
}

fn last_line(stderr: &str) -> Option<&str> {
    stderr.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Writes a time in the unit that suits it.
pub(crate) fn seconds(time: Duration) -> String {
    match time {
        time if time.subsec_nanos() == 0 => format!("{} s", time.as_secs()),
        time => format!("{} ms", time.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_panic_tells_text_and_place() {
        let stderr = "\nthread '<unnamed>' (1) panicked at src/lib.rs:7:5:\nno database\nnote: run with \
                      `RUST_BACKTRACE=1`\n";
        assert_eq!(panic_message(stderr).as_deref(), Some("no database (at src/lib.rs:7:5)"));
    }

    #[test]
    fn a_panic_of_several_lines_is_kept_whole() {
        let stderr = "thread 'main' panicked at a.rs:1:1:\nleft: 1\nright: 2\n\nmore";
        assert_eq!(panic_message(stderr).as_deref(), Some("left: 1\nright: 2 (at a.rs:1:1)"));
    }

    #[test]
    fn a_go_panic_is_found_and_other_text_is_none() {
        assert_eq!(panic_message("panic: boom\n\ngoroutine 1:\n").as_deref(), Some("boom"));
        assert_eq!(panic_message("do not panic\n"), None);
    }

    #[test]
    fn a_message_is_cut_at_a_character() {
        let Diagnosis::Failed(error) = failed(HookErrorKind::Failed, "ä".repeat(MESSAGE)) else { panic!() };
        assert_eq!(error.message.len(), MESSAGE);
    }

    #[test]
    fn the_way_to_an_abort_is_no_place() {
        assert!(is_machinery("std::process::abort"));
        assert!(is_machinery("<core::option::Option<u8>>::unwrap"));
        assert!(!is_machinery("<hostile::Hostile as periapt_sdk::Charm>::start"));
    }

    #[test]
    fn times_are_written_as_people_do() {
        assert_eq!(seconds(Duration::from_secs(30)), "30 s");
        assert_eq!(seconds(Duration::from_millis(50)), "50 ms");
    }
}
