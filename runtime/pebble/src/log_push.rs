//! Pushes: lines of services on their way to a log target.

mod body;
mod label;
mod location;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub(crate) use label::expanded;
pub use location::{LogPushLocation, LogPushScheme};

/// The characters of a refusal's words that are kept.
const MAX_SAID: usize = 200;

/// The form of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPushForm {
    /// Loki's push API, as JSON.
    Loki,
    /// OpenTelemetry's protocol by HTTP, as JSON.
    OpenTelemetry,
}

/// Lines for a log target, to be sent by one POST with a body of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPush {
    /// The target's name.
    pub target: String,
    /// The form.
    pub form: LogPushForm,
    /// The place.
    pub location: LogPushLocation,
    /// The lines of each service.
    pub streams: Vec<LogPushStream>,
}

/// Lines of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPushStream {
    /// The service.
    pub service: String,
    /// The target's labels, with the service's variables in place of their names.
    pub labels: BTreeMap<String, String>,
    /// The lines in their order.
    pub lines: Vec<LogPushLine>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPushLine {
    /// The time at which the line ended.
    pub time: Timestamp,
    /// The text without the line break.
    pub message: String,
}

/// The end of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPushResult {
    /// The target has the lines.
    Taken,
    /// The target does not take such lines, with the reason in words. They are lost.
    Refused(String),
    /// The lines did not get there, with the reason in words. They are sent again later.
    Failed(String),
}

/// The state of a log target that the operator is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTargetState {
    /// It takes lines again. So many were lost meanwhile.
    Takes {
        /// The lines that it refused, and those that gave way to newer ones before they could be sent.
        lost: u64,
    },
    /// It gets no lines or takes none, and the reason in words.
    Fails(String),
}

impl LogPush {
    /// Returns the path, with its query, that the push is sent to.
    #[must_use]
    pub fn path(&self) -> String {
        match self.form {
            LogPushForm::Loki => self.location.path.clone(),
            // The location has the server alone.
            LogPushForm::OpenTelemetry => format!("{}/v1/logs", self.location.path.trim_end_matches('/')),
        }
    }

    /// Encodes the lines.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        match self.form {
            LogPushForm::Loki => body::loki(&self.streams),
            LogPushForm::OpenTelemetry => body::open_telemetry(&self.streams),
        }
    }
}

impl LogPushResult {
    /// Judges an answer by its HTTP status. `said` is the begin of its body.
    #[must_use]
    pub fn of_answer(status: u16, said: &str) -> Self {
        let said: String = said.trim().chars().take(MAX_SAID).collect();
        let words = match said.is_empty() {
            true => format!("it answers with status {status}"),
            false => format!("it answers with status {status}: {said:?}"),
        };
        match status {
            200..=299 => Self::Taken,
            429 | 500..=599 => Self::Failed(words),
            _ => Self::Refused(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_judged_by_its_status() {
        assert_eq!(LogPushResult::of_answer(204, "no matter"), LogPushResult::Taken);
        for status in [429, 500, 503, 599] {
            let failed = LogPushResult::of_answer(status, "");
            assert_eq!(failed, LogPushResult::Failed(format!("it answers with status {status}")));
        }
        for status in [301, 400, 401, 404, 413] {
            let refused = LogPushResult::of_answer(status, " too\nold ");
            let words = format!("it answers with status {status}: \"too\\nold\"");
            assert_eq!(refused, LogPushResult::Refused(words));
        }
        let LogPushResult::Refused(words) = LogPushResult::of_answer(400, &"\u{1}".repeat(10_000)) else {
            panic!("it is refused");
        };
        assert!(words.len() < 2_000, "{}", words.len());
    }

    #[test]
    fn the_path_of_open_telemetry_follows_its_server() {
        for (location, loki, open_telemetry) in [
            ("http://h:1", "/", "/v1/logs"),
            ("http://h:1/", "/", "/v1/logs"),
            ("http://h/in/put", "/in/put", "/in/put/v1/logs"),
        ] {
            let push = |form| LogPush {
                target: "t".to_owned(),
                form,
                location: LogPushLocation::read(location).unwrap(),
                streams: Vec::new(),
            };
            assert_eq!(push(LogPushForm::Loki).path(), loki);
            assert_eq!(push(LogPushForm::OpenTelemetry).path(), open_telemetry);
        }
    }
}
