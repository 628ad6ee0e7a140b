//! The journal: each hook run with its event, its host calls and answers, and its costs (`docs/design/sandbox.md`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Revision, Timestamp, event::Event, secret::Sealed};

/// The record of one hook run, committed or failed, or of one hook that was not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JournalRecord {
    /// The `seq` of the record that the run started from; the run's operation id.
    pub seq: u64,
    /// The event.
    pub event: Event,
    /// The number of the attempt, from 1; 0 if the hook was not run.
    pub attempt: u32,
    /// The snapshot that the hook's reads come from.
    pub snapshot: Revision,
    /// The digest of the charm's archive.
    pub charm: Digest,
    /// The digest of the component that ran.
    pub component: Digest,
    /// The name and version of the engine.
    pub engine: String,
    /// The time at which the run began.
    pub started_at: Timestamp,
    /// The outcome of the run.
    pub outcome: HookOutcome,
    /// The costs of the run.
    pub costs: HookCosts,
    /// Events that were merged into this hook or became moot through it, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coalesced: Vec<String>,
    /// The host calls, in call order.
    pub calls: RecordedCalls,
    /// The seed of the run's random numbers, as hex. Passwords that the hook generated can be computed from it. The
    /// controller keeps the seed encrypted in `sealed`, and this field empty.
    pub seed: String,
    /// The seed and the answers with secret content, encrypted. `None` if the controller has not encrypted them yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

/// The placeholder for hidden content.
pub const HIDDEN: &str = "\"(hidden)\"";

impl JournalRecord {
    /// Returns the record of a hook that was not run. `seq` is that of the unit's record; `charm` and `component` are
    /// those that the hook would have run.
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

    /// Returns the record without its host calls, which are most of its size. It still says whether all were recorded.
    #[must_use]
    pub fn without_calls(self) -> Self {
        let RecordedCalls { omitted, unrecorded, .. } = self.calls;
        Self { calls: RecordedCalls { omitted, unrecorded, ..RecordedCalls::default() }, ..self }
    }

    /// Returns the reason why the run cannot be replayed: a part of its calls or streams was not recorded. Returns none
    /// if all was.
    pub fn why_not_replayable(&self) -> Option<String> {
        let RecordedCalls { omitted, unrecorded: Unrecorded { limit, streams }, .. } = &self.calls;
        if *omitted == 0 {
            return None;
        }
        let of_stream = |(target, bytes): (&String, &u64)| format!("{bytes} bytes of its stream to {target}");
        let parts = match streams.is_empty() {
            true => format!("{omitted} of its host calls"),
            false => streams.iter().map(of_stream).collect::<Vec<_>>().join(" and "),
        };
        Some(match limit {
            // An earlier release recorded it.
            0 => format!("{parts} were not kept"),
            limit => format!("{parts} were not kept (limit {limit})"),
        })
    }

    /// Returns the record without its confidential parts, which only administrators of the model may read: the seed,
    /// from which the run's random numbers can be computed, and arguments and answers of calls about secrets. An
    /// answer that another call shares is hidden in both.
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

/// The outcome of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookOutcome {
    /// The handler returned ok.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// The operator skipped the hook by `resolved --no-retry`: committed without a run (U-28).
    Skipped,
    /// The hook was due or had failed, and became moot before it ran. Nothing follows from it.
    Moot,
    /// The hook failed, trapped, ran out of a budget, or the controller refused its commit.
    Failed {
        /// The message for the author and the operator.
        message: String,
    },
}

/// The costs of a hook run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HookCosts {
    /// The fuel that the run used.
    pub fuel: u64,
    /// The high-water mark of linear memory, in bytes.
    pub memory: u64,
    /// The wall time, in microseconds.
    pub wall_us: u64,
    /// The number of host calls.
    pub host_calls: u64,
    /// The bytes of log that the run wrote.
    pub log_bytes: u64,
}

/// The host calls of one run and their answers, deduplicated by digest and bounded in size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RecordedCalls {
    /// The calls in order, each with the index of its answer.
    pub calls: Vec<RecordedCall>,
    /// The distinct answers, as JSON text.
    pub answers: Vec<String>,
    /// Answers with secret content, as JSON text; `answers` holds only references to them, `{"secret":N}`. The
    /// controller keeps these answers encrypted, with the seed, and this field empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Confidence>,
    /// The number of calls that are not recorded, because the bound was reached.
    pub omitted: u64,
    /// The facts about these calls that are kept.
    #[serde(default, skip_serializing_if = "Unrecorded::is_empty")]
    pub unrecorded: Unrecorded,
}

/// The facts about the calls of a run that are not recorded. Such a run cannot be replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Unrecorded {
    /// The bound that was reached, in bytes.
    pub limit: u64,
    /// The bytes that streams to workloads carried in these calls, in both directions, by the container or port.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub streams: BTreeMap<String, u64>,
}

impl Unrecorded {
    /// Returns true if all calls are recorded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A text that `Debug` does not print, so that no log shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Confidence(pub String);

impl std::fmt::Debug for Confidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Confidence(..)")
    }
}

/// The parts of a record that the controller encrypts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JournalConfidence {
    /// The seed of the run's random numbers.
    pub seed: Confidence,
    /// The answers with secret content.
    pub secrets: Vec<Confidence>,
}

/// One host call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RecordedCall {
    /// The interface and function: `relations.get`, `hook-tools.run`, ...
    pub function: String,
    /// The arguments, as JSON text.
    pub arguments: String,
    /// The index of the call's answer.
    pub answer: u32,
}

impl RecordedCall {
    /// Returns true if the call may be about a secret. For a hook tool the arguments decide. A call that records only
    /// the digest of its arguments counts as one about secrets.
    fn is_about_secrets(&self) -> bool {
        let tool = || self.arguments.contains("secret-") || self.arguments.starts_with("{\"digest\"");
        self.function.starts_with("secrets.") || (self.function == "hook-tools.run" && tool())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(omitted: u64, limit: u64, streams: &[(&str, u64)]) -> JournalRecord {
        let digest = Digest::of(b"");
        let outcome = HookOutcome::Handled;
        let (revision, at) = (Revision::default(), Timestamp::UNIX_EPOCH);
        let record = JournalRecord::of_no_run(1, Event::Start, outcome, revision, (digest, digest), at);
        let streams = streams.iter().map(|(target, bytes)| ((*target).to_owned(), *bytes)).collect();
        let answers = vec!["null".to_owned()];
        let calls = RecordedCalls {
            answers,
            omitted,
            unrecorded: Unrecorded { limit, streams },
            ..Default::default()
        };
        JournalRecord { calls, ..record }
    }

    #[test]
    fn a_run_of_which_a_part_was_not_recorded_says_so_with_and_without_its_calls() {
        for (omitted, limit, streams, why) in [
            (0, 0, &[][..], None),
            (7, 0, &[][..], Some("7 of its host calls were not kept")),
            (7, 262_144, &[][..], Some("7 of its host calls were not kept (limit 262144)")),
            (
                2,
                262_144,
                &[("web", 1_048_576)][..],
                Some("1048576 bytes of its stream to web were not kept (limit 262144)"),
            ),
            (
                5,
                262_144,
                &[("port 8080", 12), ("web", 3)][..],
                Some(
                    "12 bytes of its stream to port 8080 and 3 bytes of its stream to web were not kept (limit 262144)",
                ),
            ),
        ] {
            let record = record(omitted, limit, streams);
            assert_eq!(record.why_not_replayable().as_deref(), why);
            let listed = record.without_calls();
            assert_eq!((listed.why_not_replayable().as_deref(), listed.calls.answers.len()), (why, 0));
        }
    }

    #[test]
    fn a_record_of_an_earlier_release_is_read() {
        let calls: RecordedCalls =
            serde_json::from_str(r#"{"calls": [], "answers": [], "omitted": 3}"#).unwrap();
        assert_eq!((calls.omitted, calls.unrecorded.is_empty()), (3, true));
        let whole = serde_json::to_value(RecordedCalls::default()).unwrap();
        assert!(whole.get("unrecorded").is_none(), "{whole}");
    }
}
