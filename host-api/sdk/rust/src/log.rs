//! Lines in the unit's log.

use crate::{Level, host};

/// Writes one line. Prefer the macros, such as [`info!`](crate::info).
pub fn write_log(level: Level, message: &str) {
    host::log::write(level, message);
}

/// Logs at level trace.
#[macro_export]
macro_rules! trace {
    ($($message:tt)*) => { $crate::write_log($crate::Level::Trace, &::std::format!($($message)*)) };
}

/// Logs at level debug.
#[macro_export]
macro_rules! debug {
    ($($message:tt)*) => { $crate::write_log($crate::Level::Debug, &::std::format!($($message)*)) };
}

/// Logs at level info.
#[macro_export]
macro_rules! info {
    ($($message:tt)*) => { $crate::write_log($crate::Level::Info, &::std::format!($($message)*)) };
}

/// Logs at level warning.
#[macro_export]
macro_rules! warn {
    ($($message:tt)*) => { $crate::write_log($crate::Level::Warning, &::std::format!($($message)*)) };
}

/// Logs at level error.
#[macro_export]
macro_rules! error {
    ($($message:tt)*) => { $crate::write_log($crate::Level::Error, &::std::format!($($message)*)) };
}
