//! Storage as `storage`, `show-storage` and `status` show it, with Juju's field names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StatusText;

/// `storage --format json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CombinedStorage {
    /// By id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<String, StorageInfo>,
    /// What the instances lie in: by the number of the instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filesystems: BTreeMap<String, FilesystemInfo>,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageInfo {
    /// `filesystem`
    pub kind: String,
    /// Life.
    pub life: String,
    /// `pending`, `attached`, `detaching`, `detached`, `removing` or `error`.
    pub status: StatusText,
    /// Whether it outlives its unit: always.
    pub persistent: bool,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<StorageAttachments>,
    /// What it waits for before it can go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// Who has an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAttachments {
    /// By name.
    pub units: BTreeMap<String, UnitStorageInfo>,
}

/// A unit's hold on an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitStorageInfo {
    /// Its machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Where its hooks find it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub location: String,
    /// Life of the hold.
    pub life: String,
}

/// What an instance lies in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FilesystemInfo {
    /// The agent on whose disk it lies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    /// The instance.
    pub storage: String,
    /// Where it is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<FilesystemAttachments>,
    /// From where it came.
    pub pool: String,
    /// Its bound, in mebibytes.
    pub size: u64,
    /// Life.
    pub life: String,
    /// As the instance's.
    pub status: StatusText,
}

/// Where a filesystem is seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FilesystemAttachments {
    /// By number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineFilesystem>,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, UnitStorageInfo>,
}

/// A filesystem on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineFilesystem {
    /// Where hooks find it.
    pub mount_point: String,
    /// Whether they may only read it.
    pub read_only: bool,
    /// Life.
    pub life: String,
}
