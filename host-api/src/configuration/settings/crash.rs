//! The treatment of hooks that were cut short beside workloads.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The key of an application's settings that chooses a [`WorkloadCrash`].
pub const WORKLOAD_CRASH: &str = "workload-crash";

/// The treatment of a hook that was cut short after it may have changed a workload of its unit: runner, keeper or host
/// ended while it ran. Operators set it for an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadCrash {
    /// The hook runs again.
    #[default]
    Retry,
    /// The unit is in error, until an operator resolves it.
    Error,
}

impl WorkloadCrash {
    /// All choices.
    pub const ALL: [Self; 2] = [Self::Retry, Self::Error];

    /// Returns the choice as operators write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Error => "error",
        }
    }

    /// Returns true for the choice of an application for which none is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for WorkloadCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The longest part of an unknown text that its error shows, in characters.
const MAX_SHOWN: usize = 100;

/// A text that is no [`WorkloadCrash`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{WORKLOAD_CRASH} expected retry or error, got {text:?}")]
pub struct UnknownWorkloadCrash {
    text: String,
}

impl FromStr for WorkloadCrash {
    type Err = UnknownWorkloadCrash;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownWorkloadCrash { text: text.chars().take(MAX_SHOWN).collect() };
        Self::ALL.into_iter().find(|choice| choice.as_str() == text).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_is_read_as_it_is_written_and_others_are_told_both() {
        for choice in WorkloadCrash::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
            assert_eq!(serde_json::to_value(choice).unwrap(), choice.as_str());
        }
        for text in ["", "Retry", "error ", "ignore"] {
            let error = text.parse::<WorkloadCrash>().unwrap_err().to_string();
            assert_eq!(error, format!("workload-crash expected retry or error, got {text:?}"));
        }
        let long = "x".repeat(1_000).parse::<WorkloadCrash>().unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
    }
}
