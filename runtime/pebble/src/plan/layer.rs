//! Layers as YAML, and plans as YAML.

use std::collections::BTreeMap;

use periapt_host_api::yaml;
use serde::{Deserialize, Serialize};

use super::{
    check::Check,
    log_target::LogTarget,
    read::{is_default, or_default},
    service::{Override, Service, Startup},
};
use crate::limits::PodLimits;

/// A layer or a plan that is refused. The text names the layer, the entry and the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayerError(pub(crate) String);

/// One layer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Layer {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) summary: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) description: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) services: BTreeMap<String, Service>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) checks: BTreeMap<String, Check>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) log_targets: BTreeMap<String, LogTarget>,
}

impl Layer {
    /// Creates a layer of services that are enabled at startup, from their commands by name.
    pub(crate) fn of_services(services: BTreeMap<String, String>) -> Self {
        let service = |command| Service {
            mode: Some(Override::Replace),
            startup: Some(Startup::Enabled),
            command,
            ..Service::default()
        };
        let services = services.into_iter().map(|(name, command)| (name, service(command))).collect();
        Self { services, ..Self::default() }
    }

    /// Reads a layer.
    ///
    /// # Errors
    /// [`LayerError`] names the label, and where the YAML is wrong.
    pub fn read(label: &str, text: &str, limits: &PodLimits) -> Result<Self, LayerError> {
        if text.len() > limits.layer {
            let (length, most) = (text.len(), limits.layer);
            return Err(LayerError(format!(
                "layer {label:?} is {length} bytes long; at most {most} are read"
            )));
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        yaml::parse::<Option<Self>>(text)
            .map(Option::unwrap_or_default)
            .map_err(|error| LayerError(format!("cannot parse layer {label:?}: {error}")))
    }
}

/// All layers together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) services: BTreeMap<String, Service>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) checks: BTreeMap<String, Check>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) log_targets: BTreeMap<String, LogTarget>,
}

impl Plan {
    /// Writes the plan as YAML. All text is quoted, so that readers of YAML 1.1 take no text for a number or a truth.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let options = serde_saphyr::ser_options! { quote_all: true };
        let mut text = String::new();
        match serde_saphyr::to_fmt_writer_with_options(&mut text, self, options) {
            Ok(()) => text,
            // Maps of text, numbers and lists can always be written.
            Err(error) => format!("# {error}\n"),
        }
    }
}
