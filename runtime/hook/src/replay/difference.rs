//! The first call of a replay that is not the recorded one.

use std::{borrow::Cow, fmt};

use serde::Serialize;

use crate::recorder;

/// A call that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CallDifference {
    /// The number of the call in the record, from 1.
    pub number: u64,
    /// The recorded call; none if the record has no more calls.
    pub recorded: Option<ReplayedCall>,
    /// The call of the replay; none if the replay made no more calls.
    pub made: Option<ReplayedCall>,
}

/// A call as a difference shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReplayedCall {
    /// The interface and function.
    pub function: String,
    /// The arguments as JSON text. Long ones, and those with secret content, are shown as their digest.
    pub arguments: String,
}

impl ReplayedCall {
    /// Creates a call whose arguments have secret content.
    pub(super) fn sealed(function: &str, arguments: &str) -> Self {
        Self { function: function.to_owned(), arguments: recorder::digest(arguments) }
    }
}

impl fmt::Display for ReplayedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.function, self.arguments)
    }
}

impl fmt::Display for CallDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, recorded, made } = self;
        if recorded == made {
            let call = recorded.as_ref().map_or(Cow::Borrowed("none"), |call| call.to_string().into());
            return write!(f, "the recorded answer to call {number}, {call}, cannot be read");
        }
        match recorded {
            Some(call) => write!(f, "call {number} was recorded as {call}")?,
            None => write!(f, "no call {number} was recorded")?,
        }
        match made {
            Some(call) => write!(f, ", and the replay made {call}"),
            None => f.write_str(", and the replay made no more calls"),
        }
    }
}
