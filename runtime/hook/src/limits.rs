//! Bounds of a hook run.

use periapt_host_api::{
    UnitName,
    budget::{BudgetKey, BudgetSettings},
    relation::{MAX_BAG_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES},
    size,
    view::View,
};

/// The bounds of one hook run. A host may override the defaults per model or application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLimits {
    /// Bytes of one call's arguments and standard input together. The largest useful call writes all that a commit
    /// takes.
    pub call_bytes: usize,
    /// Bytes of all deferred effects, encoded as JSON, and of the other content of the bags that they change. It is the
    /// bound of a commit to the store, less the share of the unit and its application.
    pub effect_bytes: usize,
    /// Entries of the store that the effects touch: each written bag, each key of the unit's state, the ports, the
    /// leader settings. A commit takes a hundred. The rest is for its other writes: the unit itself, its application,
    /// the worker's entries.
    pub effect_keys: usize,
    /// Bytes of one value of a bag or of the leader settings: the bound of a whole bag. The controller takes no larger
    /// values.
    pub value_bytes: usize,
    /// Bytes of one key of a bag or of the leader settings; the same bound.
    pub key_bytes: usize,
    /// Bytes of all keys and values of one bag, or of the leader settings; the same bound.
    pub bag_bytes: usize,
    /// Port ranges that a unit may have open: each request is compared with each of them.
    pub port_ranges: usize,
    /// Bytes of all log lines and messages of an action. Each costs a fixed price beside its text, which bounds empty
    /// ones, too.
    pub log_bytes: usize,
    /// Bytes of one log line. Longer lines are split, because a line is one record of the store.
    pub log_line_bytes: usize,
    /// Bytes of a status's message or an application's version: both are cells of a table.
    pub message_bytes: usize,
    /// Statuses and versions that one hook may set; each is a record of the status history.
    pub statuses: usize,
    /// Bytes of an action's results as JSON: one record keeps them.
    pub result_bytes: usize,
    /// Bytes of an action's standard output, and of its standard error, that its results keep.
    pub output_bytes: usize,
    /// Messages that one action may send; each is a record.
    pub task_messages: usize,
    /// Bytes of cached secret content. When the cache is full, it is emptied and content is fetched again.
    pub fetched_bytes: usize,
    /// Bytes of the recorded calls in the journal.
    pub journal_bytes: usize,
}

/// The bytes of a commit besides the unit, its application and the effects: a hundred keys with the words around their
/// values, times and digests (half a KiB each), the growth of the unit and its application by statuses of this hook,
/// and the growth of the record at the hook's end (at most a relation's members, a name and a version each).
const BESIDE_EFFECTS: usize = 128 << 10;

impl HookLimits {
    /// Returns the bounds of one hook of a unit: the limits of its application or model, and the share of a commit that
    /// the unit and the application leave. A commit writes both, and both may be large: the unit has its record, the
    /// application its settings.
    pub fn of_hook(view: &View, unit: &UnitName) -> Self {
        let limits = Self::within(&view.budgets(unit.application()));
        let own = view.units.get(unit).map_or(0, size::of_json);
        let application = view.applications.get(unit.application()).map_or(0, size::of_json);
        let taken = own.saturating_add(application).saturating_add(BESIDE_EFFECTS);
        Self { effect_bytes: limits.effect_bytes.saturating_sub(taken), ..limits }
    }

    /// Returns the defaults, with the overrides of an application or its model.
    fn within(settings: &BudgetSettings) -> Self {
        let log_bytes = settings.value(BudgetKey::HookLogLimit);
        Self { log_bytes: usize::try_from(log_bytes).unwrap_or(usize::MAX), ..Self::default() }
    }
}

impl Default for HookLimits {
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
