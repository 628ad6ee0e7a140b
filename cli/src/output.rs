//! The output of commands: all that this program writes for people and for other programs.
//!
//! People get tables and sentences, in which untrusted text cannot steer their terminal. Programs get JSON, YAML and
//! values, byte for byte. `tests/tests/walls` checks that no other module writes to standard output or standard error,
//! or into a file that a user names.

mod escape;
mod file;
mod format;
mod progress;
mod sink;
mod style;
mod table;
mod text;
mod times;

pub(crate) use escape::{continued, escaped, one_line};
pub(crate) use file::write_whole;
pub(crate) use format::{Format, LineFormat, OutputArgs, to_json, to_yaml};
pub(crate) use progress::{Progress, Verbosity};
pub(crate) use sink::{
    Log, PassedForm, PassedOutput, PassedStream, Sink, announce, flush, inherited, is_seen, is_watched, note,
    usage, write_error,
};
pub(crate) use style::{ColorChoice, TextStyle, style_of_status};
pub(crate) use table::Table;
pub(crate) use text::Text;
pub(crate) use times::Times;

use jiff::Timestamp;

/// Formats a time for people: to the second, in UTC.
pub(crate) fn to_the_second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}
