//! How much one hook may ask of the host.

use periapt_host_api::{
    budget::{BudgetKey, BudgetSettings},
    relation::{MAX_BAG_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES},
};

/// The bounds of one hook run. The defaults are those of the design; a host may set others per model or
/// application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one call's arguments and standard input together. The largest call that makes sense writes all
    /// that a commit takes.
    pub call_bytes: usize,
    /// Bytes of all deferred effects, encoded as JSON: what a commit to the store takes.
    pub effect_bytes: usize,
    /// Entries of the store that the effects touch: each written bag, each key of the unit's state, the
    /// ports, the leader settings. A commit takes a hundred; some are left for what it writes besides: the unit
    /// itself, its application, what the worker is to do.
    pub effect_keys: usize,
    /// Bytes of one value of a bag or of the leader settings; the controller takes no larger ones.
    pub value_bytes: usize,
    /// Bytes of one of their keys; the same.
    pub key_bytes: usize,
    /// Bytes of all keys and values of one bag, or of the leader settings; the same.
    pub bag_bytes: usize,
    /// Ranges that a unit may have open: each is compared with each request.
    pub port_ranges: usize,
    /// Bytes of all log lines and messages of an action, with a fixed price for each, so that empty ones are bounded,
    /// too.
    pub log_bytes: usize,
    /// Bytes of one log line; longer ones are split, because a line is one record of the store.
    pub log_line_bytes: usize,
    /// Bytes of a status's message or an application's version: both are read by people in a table.
    pub message_bytes: usize,
    /// Statuses and versions that one hook may set; each is a record of the status history.
    pub statuses: usize,
    /// Bytes of what an action sets as its results, as JSON: they are kept in one record.
    pub result_bytes: usize,
    /// Bytes of an action's standard output, and of its standard error, that are kept in its results.
    pub output_bytes: usize,
    /// Messages that one action may send; each is a record.
    pub task_messages: usize,
    /// Bytes of secrets' content that is kept to be read again; with more, all is fetched anew.
    pub fetched_bytes: usize,
    /// Bytes of the recorded calls in the journal.
    pub journal_bytes: usize,
}

impl Limits {
    /// The usual ones, but for what an application or its model says otherwise.
    pub fn within(settings: &BudgetSettings) -> Self {
        let log_bytes = settings.value(BudgetKey::HookLogLimit);
        Self { log_bytes: usize::try_from(log_bytes).unwrap_or(usize::MAX), ..Self::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_bytes: 1 << 20,
            effect_bytes: 1 << 20,
            effect_keys: 90,
            value_bytes: MAX_VALUE_BYTES,
            key_bytes: MAX_KEY_BYTES,
            bag_bytes: MAX_BAG_BYTES,
            port_ranges: 1_000,
            log_bytes: 1 << 20,
            log_line_bytes: 16 << 10,
            message_bytes: 4 << 10,
            statuses: 200,
            result_bytes: 256 << 10,
            output_bytes: 128 << 10,
            task_messages: 1_000,
            fetched_bytes: 4 << 20,
            journal_bytes: 256 << 10,
        }
    }
}
