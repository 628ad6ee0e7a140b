//! What commands print: tables for people, JSON and YAML for programs, to standard output or into a file.

mod format;
mod sink;
mod style;
mod table;
mod times;

pub(crate) use format::{Format, OutputArgs, to_json, to_yaml};
pub(crate) use sink::{Sink, note};
pub(crate) use style::{ColorChoice, Tone, painted, tone_of_status};
pub(crate) use table::Table;
pub(crate) use times::Times;

use jiff::Timestamp;

/// A time for people: to the second, in UTC.
pub(crate) fn to_the_second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}
