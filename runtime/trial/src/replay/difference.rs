//! The first difference of a replay from its record.

use std::fmt;

use periapt_hook::CallDifference;
use periapt_host_api::{excerpt, journal::HookOutcome};
use serde::Serialize;

/// A difference of a replay from its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayDifference {
    /// A call was not the recorded one.
    Call(CallDifference),
    /// The hook ended in another way.
    Outcome {
        /// The recorded outcome.
        recorded: HookOutcome,
        /// The outcome of the replay.
        replayed: HookOutcome,
    },
    /// The hook made another number of host calls, with those of WASI.
    HostCalls {
        /// The recorded number.
        recorded: u64,
        /// The number of the replay.
        replayed: u64,
    },
    /// The hook used other fuel.
    Fuel {
        /// The recorded fuel.
        recorded: u64,
        /// The fuel of the replay.
        replayed: u64,
    },
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(difference) => difference.fmt(f),
            Self::Outcome { recorded, replayed } => {
                write!(f, "the outcome was {}, and the replay's is {}", words(recorded), words(replayed))
            }
            Self::HostCalls { recorded, replayed } => {
                write!(f, "the hook made {recorded} host calls, and the replay made {replayed}")
            }
            Self::Fuel { recorded, replayed } => {
                write!(f, "the hook used {recorded} fuel, and the replay used {replayed}")
            }
        }
    }
}

fn words(outcome: &HookOutcome) -> String {
    match outcome {
        HookOutcome::Handled => "ok".to_owned(),
        HookOutcome::Unhandled => "no handler".to_owned(),
        HookOutcome::Skipped => "skipped".to_owned(),
        HookOutcome::Moot => "moot".to_owned(),
        HookOutcome::Failed { message } => format!("failed ({})", excerpt::of_message(message)),
    }
}
