//! The event of a scene, from the hook's name and the other variables of Juju's environment.

use std::collections::BTreeSet;

use periapt_host_api::{
    RelationId, StorageId, UnitName,
    secret::{SecretId, SecretRevision},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod build;

pub(crate) use build::event;

/// A hook, by its name and subject.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventScene {
    /// The full name: `install`, `db-relation-changed`, `data-storage-attached`; for an action or a custom event its
    /// own.
    pub hook: String,
    /// The kind: a hook, an action or a custom event.
    #[serde(default)]
    pub kind: EventKind,
    /// For relation hooks, the number of one of the scene's relations.
    #[serde(default)]
    pub relation: Option<RelationId>,
    /// For relation-joined, -changed and -departed, the remote unit. A relation-changed without it is about the
    /// application.
    #[serde(default)]
    pub remote_unit: Option<UnitName>,
    /// For relation-departed, the departing unit; by default the remote unit.
    #[serde(default)]
    pub departing_unit: Option<UnitName>,
    /// For relation-batch, the changes.
    #[serde(default)]
    pub batch: Option<BatchScene>,
    /// For storage hooks, one of the scene's storages.
    #[serde(default)]
    pub storage: Option<StorageId>,
    /// For secret hooks, one of the scene's secrets.
    #[serde(default)]
    pub secret: Option<SecretId>,
    /// For secret-expired and secret-remove, the revision.
    #[serde(default)]
    pub revision: Option<SecretRevision>,
    /// For pebble-custom-notice, the notice.
    #[serde(default)]
    pub notice: Option<NoticeScene>,
    /// For pebble-check-failed and pebble-check-recovered, the check's name.
    #[serde(default)]
    pub check: Option<String>,
    /// For custom events, the data of the charm's request.
    #[serde(default)]
    pub data: Value,
}

/// A notice of a workload.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NoticeScene {
    /// The notice's id in Pebble.
    #[serde(default = "first_notice")]
    pub id: u64,
    /// The notice's key.
    pub key: String,
}

fn first_notice() -> u64 {
    1
}

/// The kinds of events that a name alone does not tell apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A hook, as in Juju.
    #[default]
    Hook,
    /// An action that an operator runs.
    Action,
    /// A later event that the charm requested.
    Custom,
}

/// The members of a batch.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BatchScene {
    /// True if the remote application's settings changed.
    pub application_changed: bool,
    /// Units that came into view.
    pub joined: BTreeSet<UnitName>,
    /// Members whose settings changed.
    pub changed: BTreeSet<UnitName>,
    /// Members that went out of view.
    pub departed: BTreeSet<UnitName>,
}
