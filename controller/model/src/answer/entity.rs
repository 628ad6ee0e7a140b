//! The answer to one command of a request with an id.

use periapt_host_api::{
    ApplicationName, Digest, RequestId, Timestamp, UnitName, UserName, command::Answer, secret::Sealed, size,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The bytes of a kept answer besides those that its own size counts: its key, twice, and its times and digests.
const FIXED_BYTES: usize = 512;

/// The key of a kept answer: one command of one request of one user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AnswerKey {
    /// The user who sent the request. No other user gets the answer.
    pub user: UserName,
    /// The request.
    pub request: RequestId,
    /// The place of the command in the request, from 0.
    pub index: u32,
}

/// The answer to a command that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KeptAnswer {
    /// The key.
    pub key: AnswerKey,
    /// The user's id. A later user of the same name gets no answer of this one.
    pub user_uuid: Uuid,
    /// The digest of the command as the client sent it, with the controller's key.
    pub command: Digest,
    /// The time at which the command was carried out.
    pub at: Timestamp,
    /// The answer.
    pub output: KeptOutput,
    /// The response of the request, sealed with the controller's key, if it holds what is not in the answer: a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Sealed>,
}

impl KeptAnswer {
    /// Returns the bytes that the answer takes, in memory and in a store.
    pub(crate) fn weight(&self) -> usize {
        let response = self.response.as_ref().map_or(0, size::of_json);
        FIXED_BYTES.saturating_add(size::of_json(&self.output)).saturating_add(response)
    }
}

/// The output of a command in its stored form. Units are a range: a command makes up to 10,000 at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptOutput {
    /// No answer.
    Done,
    /// The answer to a command that made units.
    Units(UnitRange),
    /// The answer to a command that made an application with units.
    Application {
        /// The application's name.
        name: ApplicationName,
        /// The first units.
        units: UnitRange,
    },
    /// Any other answer.
    Answer(Answer),
}

/// Units of one application with successive numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnitRange {
    /// The first unit.
    pub first: UnitName,
    /// The number of units.
    pub count: u32,
}
