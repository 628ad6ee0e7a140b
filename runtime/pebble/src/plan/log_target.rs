//! Log targets: places that a pod forwards its services' logs to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    read::{is_default, or_default},
    service::Override,
};
use crate::word::words;

words! {
    /// The protocol of a log target.
    pub(crate) enum LogTargetKind {
        /// Grafana Loki's push API.
        Loki = "loki",
        /// Syslog by TCP or UDP.
        Syslog = "syslog",
        /// OpenTelemetry's protocol by HTTP.
        OpenTelemetry = "opentelemetry",
    }
}

/// A log target of a layer or of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct LogTarget {
    #[serde(
        rename = "override",
        deserialize_with = "Override::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) mode: Option<Override>,
    #[serde(
        rename = "type",
        deserialize_with = "LogTargetKind::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) kind: Option<LogTargetKind>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) location: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) services: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) labels: BTreeMap<String, String>,
}
