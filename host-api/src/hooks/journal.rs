//! The journal: what a hook was told, what it was answered, and what it cost (`design.md` section 9).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Revision, Timestamp, event::Event, secret::Sealed};

/// One hook run, whether it was committed or failed, or one hook that was not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JournalRecord {
    /// The `seq` of the record that the run started from; the run's operation id.
    pub seq: u64,
    /// What the charm was told.
    pub event: Event,
    /// 1 for the first attempt; 0 if it was not run.
    pub attempt: u32,
    /// The snapshot that its reads were answered from.
    pub snapshot: Revision,
    /// The charm's archive.
    pub charm: Digest,
    /// The component that ran.
    pub component: Digest,
    /// The engine and its version.
    pub engine: String,
    /// When it began.
    pub started_at: Timestamp,
    /// How it ended.
    pub outcome: HookOutcome,
    /// What it cost.
    pub costs: HookCosts,
    /// What this hook absorbed: events that were merged into it or became moot, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coalesced: Vec<String>,
    /// The host calls, in order.
    pub calls: RecordedCalls,
    /// The seed of the run's randomness, as hex: whoever knows it knows the passwords that the hook made. The
    /// controller keeps it sealed, in `sealed`, and this empty.
    pub seed: String,
    /// The seed and the answers that hold secrets, as the controller keeps them; none: it has not sealed them yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

/// What stands in the place of something that is not shown.
pub const HIDDEN: &str = "\"(hidden)\"";

impl JournalRecord {
    /// The record of a hook that was not run. `seq` is that of the unit's record, `charm` and `component` are those that it
    /// would have run.
    pub fn of_no_run(
        seq: u64,
        event: Event,
        outcome: HookOutcome,
        snapshot: Revision,
        (charm, component): (Digest, Digest),
        at: Timestamp,
    ) -> Self {
        Self {
            seq,
            event,
            attempt: 0,
            snapshot,
            charm,
            component,
            engine: String::new(),
            started_at: at,
            outcome,
            costs: HookCosts::default(),
            coalesced: Vec::new(),
            calls: RecordedCalls::default(),
            seed: String::new(),
            sealed: None,
        }
    }

    /// The same without its host calls: they are most of a record.
    #[must_use]
    pub fn without_calls(self) -> Self {
        Self { calls: RecordedCalls::default(), ..self }
    }

    /// The same without what is for those who may do anything in the model: the seed, from which all that the run drew
    /// can be computed, and what calls about secrets were given and answered. An answer that another call shares is
    /// hidden from both.
    #[must_use]
    pub fn without_secrets(mut self) -> Self {
        self.seed.clear();
        self.sealed = None;
        self.calls.secrets.clear();
        let RecordedCalls { calls, answers, .. } = &mut self.calls;
        for call in calls.iter_mut().filter(|call| call.is_about_secrets()) {
            HIDDEN.clone_into(&mut call.arguments);
            let answer = usize::try_from(call.answer).ok().and_then(|index| answers.get_mut(index));
            if let Some(answer) = answer {
                HIDDEN.clone_into(answer);
            }
        }
        self
    }
}

/// How a hook run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookOutcome {
    /// The handler returned ok.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// `resolved --no-retry`: committed without being run (U-28).
    Skipped,
    /// It was due or had failed, and lost its meaning before it ran: nothing follows it.
    Moot,
    /// It failed, trapped, ran out of a budget, or was refused at commit.
    Failed {
        /// What author and operator read.
        message: String,
    },
}

/// What a hook run cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HookCosts {
    /// Fuel used.
    pub fuel: u64,
    /// High-water mark of linear memory, in bytes.
    pub memory: u64,
    /// Wall time, in microseconds.
    pub wall_us: u64,
    /// Host calls made.
    pub host_calls: u64,
    /// Bytes of log written.
    pub log_bytes: u64,
}

/// The host calls of one run with their answers, deduplicated by digest and bounded in size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RecordedCalls {
    /// Each call in order: `INTERFACE.FUNCTION(ARGUMENTS)` as compact JSON text, and the index of its answer.
    pub calls: Vec<RecordedCall>,
    /// The distinct answers, as JSON text.
    pub answers: Vec<String>,
    /// Answers that hold secrets' content, as JSON texts; in `answers` stand only their places, `{"secret":N}`.
    /// The controller keeps them sealed, with the seed, and this empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Confidence>,
    /// Calls that are not recorded, because the bound was reached.
    pub omitted: u64,
}

/// A text for no log: it is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Confidence(pub String);

impl std::fmt::Debug for Confidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Confidence(..)")
    }
}

/// What of a run is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JournalConfidence {
    /// The seed.
    pub seed: Confidence,
    /// The answers that hold secrets.
    pub secrets: Vec<Confidence>,
}

/// One host call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RecordedCall {
    /// `relations.get`, `hook-tools.run`, ...
    pub function: String,
    /// The arguments, as JSON text.
    pub arguments: String,
    /// Which of the answers it got.
    pub answer: u32,
}

impl RecordedCall {
    /// Whether it may have to do with a secret. Of a hook tool the arguments tell; where only their digest is there,
    /// nobody knows.
    fn is_about_secrets(&self) -> bool {
        let tool = || self.arguments.contains("secret-") || self.arguments.starts_with("{\"digest\"");
        self.function.starts_with("secrets.") || (self.function == "hook-tools.run" && tool())
    }
}
