//! Early effects: effects that leave the hook at once, in order.

use std::mem;

use periapt_host_api::{Timestamp, commit::EarlyEffect, logs::LogLevel};

use crate::HookLimits;

/// Bytes that a log line costs beside its text: the store keeps its time, level and module with it.
const LINE_BYTES: usize = 64;

/// Early effects that the host has not taken yet. [`Limits`] bounds their number.
#[derive(Debug)]
pub(crate) struct EarlyEffects {
    items: Vec<(Timestamp, EarlyEffect)>,
    log_budget: usize,
    log_left: usize,
    /// Bytes of text that were logged.
    logged: u64,
    dropped: Option<DroppedLines>,
}

/// Counts of log lines past the budget.
#[derive(Debug)]
struct DroppedLines {
    lines: u64,
    bytes: u64,
    module: String,
    last: Timestamp,
}

impl EarlyEffects {
    pub(crate) fn new(limits: &HookLimits) -> Self {
        Self {
            items: Vec::new(),
            log_budget: limits.log_bytes,
            log_left: limits.log_bytes,
            logged: 0,
            dropped: None,
        }
    }

    pub(crate) fn push(&mut self, at: Timestamp, effect: EarlyEffect) {
        self.items.push((at, effect));
    }

    /// Logs one line, or counts it as dropped. After the first dropped line all are dropped: a log with holes
    /// misleads.
    pub(crate) fn log(&mut self, at: Timestamp, level: LogLevel, module: &str, message: &str) {
        let price = message.len() + LINE_BYTES;
        if self.dropped.is_none() && price <= self.log_left {
            self.log_left -= price;
            self.logged += message.len() as u64;
            let (module, message) = (module.to_owned(), message.to_owned());
            self.push(at, EarlyEffect::Log { level, module, message });
            return;
        }
        let dropped = self.dropped.get_or_insert_with(|| DroppedLines {
            lines: 0,
            bytes: 0,
            module: module.to_owned(),
            last: at,
        });
        dropped.lines += 1;
        dropped.bytes += message.len() as u64;
        dropped.last = at;
    }

    /// Takes the cost of an action's message from the log's budget. False if the budget is used up.
    pub(crate) fn pay_message(&mut self, message: &str) -> bool {
        let left = self.log_left.checked_sub(message.len() + LINE_BYTES);
        self.log_left = left.unwrap_or(self.log_left);
        left.is_some()
    }

    pub(crate) fn drain(&mut self) -> Vec<(Timestamp, EarlyEffect)> {
        mem::take(&mut self.items)
    }

    /// Returns the remaining effects, with a last line that counts the dropped ones, and the bytes of log that
    /// the hook wrote.
    pub(crate) fn finish(mut self) -> (Vec<(Timestamp, EarlyEffect)>, u64) {
        let mut written = self.logged;
        if let Some(dropped) = self.dropped.take() {
            written += dropped.bytes;
            let message = format!(
                "the hook's log is full at {} bytes: {} more lines of {} bytes were dropped",
                self.log_budget, dropped.lines, dropped.bytes
            );
            let (level, module) = (LogLevel::Warning, dropped.module);
            self.push(dropped.last, EarlyEffect::Log { level, module, message });
        }
        (self.items, written)
    }
}
