//! The streams that a handler writes to.

/// A standard stream of the handler, whose lines go to the unit's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Logged as `DEBUG`.
    Stdout,
    /// Logged as `WARNING`.
    Stderr,
}
