//! The unit's log (`docs/hook-model.md` 5.2, E-2).

mod stream;

pub use stream::OutputStream;

use periapt_host_api::logs::LogLevel;

use crate::{
    CallTime,
    context::{HookContext, HookRun},
};

/// The typed interface: `log`.
impl HookContext {
    /// Writes one line to the unit's log, at once.
    pub fn log(&mut self, now: CallTime, level: LogLevel, message: &str) {
        self.call("log.write", (level, message), |_| ());
        // A replay has the lines of the charm's log, too.
        self.run.log(now, level, message);
    }
}

impl HookRun {
    /// Logs one line of the charm, with the hook's relation in front (O09).
    pub(crate) fn log(&mut self, now: CallTime, level: LogLevel, message: &str) {
        let module = format!("unit.{}.juju-log", self.snapshot.unit);
        let relation = self.hook_relation();
        let prefix = relation.map(|context| format!("{}:{}: ", context.endpoint, context.relation));
        self.log_parts(now, level, &module, &format!("{}{message}", prefix.unwrap_or_default()));
    }

    /// Logs output of the handler.
    pub(crate) fn log_output(&mut self, now: CallTime, stream: OutputStream, text: &str) {
        let level = match stream {
            OutputStream::Stdout => LogLevel::Debug,
            OutputStream::Stderr => LogLevel::Warning,
        };
        let module = format!("unit.{}.{}", self.snapshot.unit, self.event);
        self.log_parts(now, level, &module, text);
    }

    /// Logs a text in parts of bounded length.
    fn log_parts(&mut self, now: CallTime, level: LogLevel, module: &str, text: &str) {
        let mut rest = text.trim_end_matches(['\r', '\n']);
        loop {
            let (part, more) = rest.split_at(rest.floor_char_boundary(self.limits.log_line_bytes));
            // A bound below one character would make an endless loop.
            let (part, more) = if part.is_empty() { (rest, "") } else { (part, more) };
            self.early.log(now.at, level, module, part);
            if more.is_empty() {
                return;
            }
            rest = more;
        }
    }
}
