//! Services: programs that the pod keeps running.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::read::{is_default, or_default};
use crate::{
    duration::{GoDuration, optional},
    word::words,
};

words! {
    /// The way in which a layer's entry meets the entry of the layers below.
    pub(crate) enum Override {
        /// Fields that are set change the entry below.
        Merge = "merge",
        /// The entry stands alone.
        Replace = "replace",
    }
}

words! {
    /// The reaction to `autostart` and `replan`.
    pub(crate) enum Startup {
        /// Started.
        Enabled = "enabled",
        /// Left alone.
        Disabled = "disabled",
    }
}

words! {
    /// The reaction to an end or to a failed check.
    pub(crate) enum Action {
        /// Starts the service again.
        Restart = "restart",
        /// Ends the pod, with success after a success and failure after a failure.
        Shutdown = "shutdown",
        /// Does nothing.
        Ignore = "ignore",
        /// Ends the pod with success.
        SuccessShutdown = "success-shutdown",
        /// Ends the pod with failure.
        FailureShutdown = "failure-shutdown",
    }
}

/// A service of a layer or of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Service {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) summary: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) description: String,
    #[serde(deserialize_with = "Startup::optional", skip_serializing_if = "Option::is_none")]
    pub(crate) startup: Option<Startup>,
    #[serde(
        rename = "override",
        deserialize_with = "Override::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) mode: Option<Override>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) command: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) after: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) before: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) requires: Vec<String>,
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
    #[serde(deserialize_with = "Action::optional", skip_serializing_if = "Option::is_none")]
    pub(crate) on_success: Option<Action>,
    #[serde(deserialize_with = "Action::optional", skip_serializing_if = "Option::is_none")]
    pub(crate) on_failure: Option<Action>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) on_check_failure: BTreeMap<String, Action>,
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub(crate) backoff_delay: Option<GoDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) backoff_factor: Option<f64>,
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub(crate) backoff_limit: Option<GoDuration>,
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub(crate) kill_delay: Option<GoDuration>,
}

impl Service {
    /// Returns the first pause before a restart.
    pub(crate) fn backoff_delay(&self) -> Duration {
        self.backoff_delay.map_or(Duration::from_millis(500), |it| it.0)
    }

    /// Returns the factor between two pauses.
    pub(crate) fn backoff_factor(&self) -> f64 {
        self.backoff_factor.unwrap_or(2.0)
    }

    /// Returns the longest pause. A service that has run for as long begins with the first pause again.
    pub(crate) fn backoff_limit(&self) -> Duration {
        self.backoff_limit.map_or(Duration::from_secs(30), |it| it.0)
    }

    /// Returns the time between SIGTERM and SIGKILL.
    pub(crate) fn kill_delay(&self) -> Duration {
        self.kill_delay.map_or(Duration::from_secs(5), |it| it.0)
    }

    /// Returns true for a service that `autostart` and `replan` start.
    pub(crate) fn is_enabled(&self) -> bool {
        self.startup == Some(Startup::Enabled)
    }
}
