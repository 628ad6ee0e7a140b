//! How much one hook may ask of the host.

use periapt_host_api::{
    UnitName,
    budget::{BudgetKey, BudgetSettings},
    relation::{MAX_BAG_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES},
    size,
    view::View,
};

/// The bounds of one hook run. The defaults are those of the design; a host may set others per model or
/// application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one call's arguments and standard input together. The largest call that makes sense writes all
    /// that a commit takes.
    pub call_bytes: usize,
    /// Bytes of all deferred effects, encoded as JSON, and of what stands in the bags that they change: what a commit to
    /// the store takes, less what the unit and its application take in it.
    pub effect_bytes: usize,
    /// Entries of the store that the effects touch: each written bag, each key of the unit's state, the
    /// ports, the leader settings. A commit takes a hundred; some are left for what it writes besides: the unit
    /// itself, its application, what the worker is to do.
    pub effect_keys: usize,
    /// Bytes of one value of a bag or of the leader settings: as many as a bag may have. The controller takes no larger
    /// ones.
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

/// What a commit takes besides the unit, its application and the effects: a hundred keys with the words around their
/// values, times and digests (half a KiB each), what statuses of this hook add to the unit and its application, and
/// what the record grows by when the hook is done: a relation's members at most, a name and a version each.
const BESIDE_EFFECTS: usize = 128 << 10;

impl Limits {
    /// Those of one hook of a unit: what its application or its model says, and as much of a commit as the unit and the
    /// application leave. Both are written with it, and may be large: the one has its record, the other its settings.
    pub fn of_hook(view: &View, unit: &UnitName) -> Self {
        let limits = Self::within(&view.budgets(unit.application()));
        let own = view.units.get(unit).map_or(0, size::of_json);
        let application = view.applications.get(unit.application()).map_or(0, size::of_json);
        let taken = own.saturating_add(application).saturating_add(BESIDE_EFFECTS);
        Self { effect_bytes: limits.effect_bytes.saturating_sub(taken), ..limits }
    }

    /// The usual ones, but for what an application or its model says otherwise.
    fn within(settings: &BudgetSettings) -> Self {
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
