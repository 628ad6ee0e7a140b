//! The storage that `storage`, `show-storage` and `status` show, with Juju's field names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StatusText;

/// The document of `storage --format json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CombinedStorage {
    /// The storage instances, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<String, StorageInfo>,
    /// The filesystems of the instances, by the instance's number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filesystems: BTreeMap<String, FilesystemInfo>,
}

/// A storage instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageInfo {
    /// The kind: `filesystem`.
    pub kind: String,
    /// The instance's life.
    pub life: String,
    /// The status: `pending`, `attached`, `detaching`, `detached`, `removing` or `error`.
    pub status: StatusText,
    /// True if the storage outlives its unit, which it always does.
    pub persistent: bool,
    /// The unit that the instance is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<StorageAttachments>,
    /// The conditions that the removal waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// The attachments of an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAttachments {
    /// The attachments, by unit.
    pub units: BTreeMap<String, UnitStorageInfo>,
}

/// The attachment of an instance to a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitStorageInfo {
    /// The unit's machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The path at which the unit's hooks find the storage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub location: String,
    /// The life of the attachment.
    pub life: String,
}

/// The filesystem of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FilesystemInfo {
    /// The agent whose disk holds the filesystem.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    /// The storage instance.
    pub storage: String,
    /// The attachments of the filesystem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<FilesystemAttachments>,
    /// The storage pool.
    pub pool: String,
    /// The size limit, in mebibytes.
    pub size: u64,
    /// The filesystem's life.
    pub life: String,
    /// The same status as the instance's.
    pub status: StatusText,
}

/// The attachments of a filesystem.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FilesystemAttachments {
    /// The attachments, by machine number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineFilesystem>,
    /// The attachments, by unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, UnitStorageInfo>,
}

/// The attachment of a filesystem to a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineFilesystem {
    /// The path at which hooks find the filesystem.
    pub mount_point: String,
    /// True if hooks may only read it.
    pub read_only: bool,
    /// The life of the attachment.
    pub life: String,
}
