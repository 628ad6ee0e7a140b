//! The migration of a model to another controller: the plan, the pages that carry the model, and what the earlier
//! controller tells afterwards.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    AgentName, Digest, Level, ModelUuid, Timestamp, UserName,
    agent::{ControllerPlace, Register},
    secret::Confidential,
    token::Token,
};

/// The seconds for which a migration may carry a model. One that takes longer ends, and the model goes on where it was.
pub const MIGRATION_SECONDS: u64 = 3_600;

/// The number of the next page of a model that has come whole: it can be handed over.
pub const HELD: u64 = u64::MAX - 1;

/// The number of the next page of a model whose earlier attempt is being deleted.
pub const DELETING: u64 = u64::MAX;

/// The seconds for which the earlier controller tells where a model has gone: 7 days.
pub const MOVED_SECONDS: u64 = 7 * 86_400;

/// The most agents and users of a model that can migrate: their names and keys are in one request.
pub const MAX_PLANNED: usize = 5_000;

/// The most bytes of the certificate of a controller's authority.
pub const MAX_AUTHORITY_BYTES: usize = 16 << 10;

/// The controller to which a model migrates, with a session there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MigrationTarget {
    /// The controller.
    pub place: ControllerPlace,
    /// The token of a session of a superuser there. The migration ends the session that it used last.
    pub token: Confidential<Token>,
}

/// A model that is to come, with what its new controller must have or must not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ImportPlan {
    /// The migration; nil before it has begun.
    pub id: Uuid,
    /// The UUID of the controller that has the model.
    pub source: Uuid,
    /// The level of what that controller stores.
    pub level: Level,
    /// The model itself, in its stored form.
    pub model: Value,
    /// The model's owner, and the users with access to it.
    pub users: Vec<UserName>,
    /// The agents with machines or storage of the model.
    pub agents: Vec<AgentKeyDigest>,
}

/// An agent, and the digest of its public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentKeyDigest {
    /// The agent.
    pub agent: AgentName,
    /// The SHA-256 digest of its public key.
    pub key: Digest,
}

/// An agent that comes with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ImportedAgent {
    /// The agent.
    pub agent: AgentName,
    /// The SHA-256 digest of its public key.
    pub key: Digest,
    /// The description of its host.
    pub host: Register,
}

/// A row of a model's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ImportedRecord {
    /// The entity that the row is about; empty for log lines.
    pub entity: String,
    /// The time of the row.
    pub at: Timestamp,
    /// The content, in its stored form.
    pub body: Value,
}

/// A part of a model that migrates. Its debug output does not show the content.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ImportPage {
    /// The model.
    pub model: ModelUuid,
    /// The migration.
    pub id: Uuid,
    /// The number of the page, from 0. A page that has come already changes nothing.
    pub number: u64,
    /// Agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<ImportedAgent>,
    /// Entities in their stored form. Encrypted content comes open; the controller encrypts it before it goes further.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Value>,
    /// Rows of history, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<ImportedRecord>,
}

impl fmt::Debug for ImportPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, number, agents, entities, records, .. } = self;
        let (agents, entities, records) = (agents.len(), entities.len(), records.len());
        write!(f, "ImportPage({model}, {number}: {agents} agents, {entities} entities, {records} records)")
    }
}

/// The phase of a migration, at the controller that has or had the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationPhase {
    /// The model is carried over, and takes no commands.
    Exporting,
    /// The other controller has all of the model, and is about to take over.
    HandedOver,
    /// The other controller has taken over.
    Moved,
    /// The migration ended, and the model stayed.
    Failed,
}

impl MigrationPhase {
    /// Returns the phase in its written form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exporting => "exporting",
            Self::HandedOver => "handed-over",
            Self::Moved => "moved",
            Self::Failed => "failed",
        }
    }
}

/// The state of a model's migration to another controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MigrationStatus {
    /// The model.
    pub model: ModelUuid,
    /// The migration.
    pub id: Uuid,
    /// The phase.
    pub phase: MigrationPhase,
    /// The controller to which it goes; none once it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ControllerPlace>,
    /// The time at which the phase began.
    pub since: Timestamp,
    /// The time at which the phase ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The reason of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
