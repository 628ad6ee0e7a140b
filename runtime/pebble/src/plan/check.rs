//! Checks: regular questions to a workload.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    read::{is_default, or_default},
    service::{Override, Startup},
};
use crate::{
    duration::{GoDuration, optional},
    word::words,
};

words! {
    /// The meaning of a check for the health of the pod.
    pub enum CheckLevel {
        /// The workload lives. It matters for `alive` and `ready`.
        Alive = "alive",
        /// The workload serves.
        Ready = "ready",
    }
}

/// A check of a layer or of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Check {
    #[serde(
        rename = "override",
        deserialize_with = "Override::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) mode: Option<Override>,
    #[serde(deserialize_with = "CheckLevel::optional", skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<CheckLevel>,
    #[serde(deserialize_with = "Startup::optional", skip_serializing_if = "Option::is_none")]
    pub(crate) startup: Option<Startup>,
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub(crate) period: Option<GoDuration>,
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<GoDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tcp: Option<TcpCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exec: Option<ExecCheck>,
}

/// A check that asks by HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct HttpCheck {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) url: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) headers: BTreeMap<String, String>,
}

/// A check that connects by TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct TcpCheck {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u16>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) host: String,
}

/// A check that runs a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct ExecCheck {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) command: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) service_context: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) environment: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<u32>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_id: Option<u32>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) group: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) working_dir: String,
}

/// The one question of a valid check.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProbeKind<'a> {
    /// By HTTP.
    Http(&'a HttpCheck),
    /// By TCP.
    Tcp(&'a TcpCheck),
    /// By a command.
    Exec(&'a ExecCheck),
}

impl ProbeKind<'_> {
    /// Returns the kind in a word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http(_) => "HTTP",
            Self::Tcp(_) => "TCP",
            Self::Exec(_) => "exec",
        }
    }
}

impl Check {
    /// Returns the question of a check that has exactly one.
    pub(crate) fn probe(&self) -> Option<ProbeKind<'_>> {
        match (&self.http, &self.tcp, &self.exec) {
            (Some(http), None, None) => Some(ProbeKind::Http(http)),
            (None, Some(tcp), None) => Some(ProbeKind::Tcp(tcp)),
            (None, None, Some(exec)) => Some(ProbeKind::Exec(exec)),
            _ => None,
        }
    }

    /// Returns the time between two questions.
    pub(crate) fn period(&self) -> Duration {
        self.period.map_or(Duration::from_secs(10), |it| it.0)
    }

    /// Returns the time that an answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.map_or(Duration::from_secs(3), |it| it.0)
    }

    /// Returns the number of failures in a row that mean that the workload is down.
    pub(crate) fn threshold(&self) -> u32 {
        self.threshold.unwrap_or(3)
    }

    /// Returns true for a check that runs without being asked for.
    pub(crate) fn is_enabled(&self) -> bool {
        self.startup != Some(Startup::Disabled)
    }
}
