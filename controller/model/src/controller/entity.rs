//! The controller's own entity.

use std::collections::BTreeMap;

use periapt_host_api::{
    Level, Timestamp, cloud::StoredClouds, program::ProgramTarget, settings::ModelSettings,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Controller {
    /// The controller's id. It never changes.
    pub uuid: Uuid,
    /// The controller's name, given at its first start.
    pub name: String,
    /// The settings of all models that do not set them themselves.
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_defaults: ModelSettings,
    /// The data that Juju's clients store in the controller.
    #[serde(default, skip_serializing_if = "StoredClouds::is_empty")]
    pub kept: StoredClouds,
    /// The level of what is stored.
    #[serde(default, skip_serializing_if = "Level::is_first")]
    pub level: Level,
    /// The controllers of one log, by name; none of a controller alone, and none below level 2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, ControllerMember>,
    /// The program that all controllers and agents are to run; none before an operator has set one, and none below
    /// level 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramTarget>,
    /// The time of the first start.
    pub created_at: Timestamp,
}

/// One of several controllers of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerMember {
    /// The URL by which clients reach it; none before its first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The highest level that its program knows.
    pub level: Level,
    /// True once an operator has removed it: it ends, and joins again with a new token alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}
