//! A guard that turns panics of third-party readers into errors.
//!
//! Readers of zip, YAML and WebAssembly return errors for invalid bytes. A panic is a defect of the reader, and the
//! guard reports it as a refusal of the bytes.

use std::{
    any::Any,
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most characters of a panic's message in an error: it may quote the bytes.
const TOLD: usize = 200;

/// A panic of a reader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be read here, because of a defect of the reader: {0}")]
pub struct ReaderPanicked(String);

thread_local! {
    /// True while panics of this thread become refusals. They are logged, and not written to standard error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

impl ReaderPanicked {
    /// Returns the beginning of the panic's message.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

/// The number of callers that wait for work on several threads. While there are any, no panic goes to standard error.
static WITH_WORKERS: AtomicUsize = AtomicUsize::new(0);

/// Runs a reader of untrusted bytes. State that a panic leaves behind is not used again.
///
/// # Errors
/// [`ReaderPanicked`] if the reader panicked.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, ReaderPanicked> {
    log_guarded_panics();
    let outer = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    result.map_err(|payload| ReaderPanicked(message(&*payload)))
}

/// Runs work that uses several threads, such as a compiler's. The waiting caller reports panics of those threads.
///
/// # Errors
/// [`ReaderPanicked`] if the work panicked.
pub fn guarded_with_workers<T>(work: impl FnOnce() -> T) -> Result<T, ReaderPanicked> {
    WITH_WORKERS.fetch_add(1, Ordering::Relaxed);
    let result = guarded(work);
    WITH_WORKERS.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Replaces the process's panic hook by one that logs panics of guarded threads. All other panics go to the previous
/// hook.
fn log_guarded_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if GUARDED.get() || WITH_WORKERS.load(Ordering::Relaxed) > 0 {
                let location = panic.location().map(ToString::to_string).unwrap_or_default();
                tracing::error!(location, "the reader of an untrusted archive panicked");
            } else {
                before(panic);
            }
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason is known").chars().take(TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_panics_is_an_error_that_tells_a_little_of_why() {
        assert_eq!(guarded(|| 7), Ok(7));
        let error = guarded(|| panic!("at byte {}", 3)).map(|(): ()| ()).unwrap_err();
        assert_eq!(error.to_string(), "it cannot be read here, because of a defect of the reader: at byte 3");
        let long = guarded(|| panic!("{}", "x".repeat(1 << 20))).map(|(): ()| ()).unwrap_err();
        assert!(long.to_string().len() < 2 * TOLD, "{} bytes", long.to_string().len());
        assert!(!GUARDED.get(), "what comes after a guarded reader is heard again");
    }

    #[test]
    fn a_panic_of_a_worker_is_told_by_the_thread_that_waits_for_it() {
        let part = || -> u8 { panic!("in part 2") };
        let work = || std::thread::spawn(part).join().unwrap_or_else(|payload| panic::resume_unwind(payload));
        let error = guarded_with_workers(work).unwrap_err();
        assert_eq!(error.reason(), "in part 2");
        assert_eq!(WITH_WORKERS.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_guard_within_a_guard_ends_with_the_outer() {
        let outer = guarded(|| {
            let inner = guarded(|| panic!("inner")).map(|(): ()| ());
            (inner.is_err(), GUARDED.get())
        });
        assert_eq!(outer, Ok((true, true)));
    }
}
