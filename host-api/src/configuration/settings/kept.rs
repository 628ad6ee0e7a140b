//! Model settings of Juju's that are kept and have no effect: Juju's clients set them and read them back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::truth;

/// The longest value, in bytes. A model carries all values, and each reader of a model loads them.
const MAX_VALUE: usize = 16 << 10;

/// Values by key, as they were written.
pub type KeptSettings = BTreeMap<KeptKey, String>;

/// A model setting of Juju's without a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "Juju's names, which say what they are in Juju")]
pub enum KeptKey {
    AgentMetadataUrl,
    AgentStream,
    AptMirror,
    CharmhubUrl,
    CloudinitUserdata,
    ContainerImageStream,
    DefaultBase,
    DefaultSeries,
    Development,
    DisableTelemetry,
    EnableOsRefreshUpdate,
    EnableOsUpgrade,
    ImageMetadataUrl,
    ImageStream,
    LoggingConfig,
    LxdSnapChannel,
    NumContainerProvisionWorkers,
    NumProvisionWorkers,
    ProvisionerHarvestMode,
    TestMode,
    TransmitVendorMetrics,
}

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Truth,
    Number,
}

/// A setting's name, its kind, and Juju's default.
struct Rule {
    name: &'static str,
    kind: Kind,
    default: &'static str,
}

impl KeptKey {
    /// All keys, by name.
    pub const ALL: [Self; 21] = [
        Self::AgentMetadataUrl,
        Self::AgentStream,
        Self::AptMirror,
        Self::CharmhubUrl,
        Self::CloudinitUserdata,
        Self::ContainerImageStream,
        Self::DefaultBase,
        Self::DefaultSeries,
        Self::Development,
        Self::DisableTelemetry,
        Self::EnableOsRefreshUpdate,
        Self::EnableOsUpgrade,
        Self::ImageMetadataUrl,
        Self::ImageStream,
        Self::LoggingConfig,
        Self::LxdSnapChannel,
        Self::NumContainerProvisionWorkers,
        Self::NumProvisionWorkers,
        Self::ProvisionerHarvestMode,
        Self::TestMode,
        Self::TransmitVendorMetrics,
    ];

    fn rule(self) -> Rule {
        let (name, kind, default) = match self {
            Self::AgentMetadataUrl => ("agent-metadata-url", Kind::Text, ""),
            Self::AgentStream => ("agent-stream", Kind::Text, "released"),
            Self::AptMirror => ("apt-mirror", Kind::Text, ""),
            Self::CharmhubUrl => ("charmhub-url", Kind::Text, "https://api.charmhub.io"),
            Self::CloudinitUserdata => ("cloudinit-userdata", Kind::Text, ""),
            Self::ContainerImageStream => ("container-image-stream", Kind::Text, "released"),
            Self::DefaultBase => ("default-base", Kind::Text, ""),
            Self::DefaultSeries => ("default-series", Kind::Text, ""),
            Self::Development => ("development", Kind::Truth, "false"),
            Self::DisableTelemetry => ("disable-telemetry", Kind::Truth, "false"),
            Self::EnableOsRefreshUpdate => ("enable-os-refresh-update", Kind::Truth, "true"),
            Self::EnableOsUpgrade => ("enable-os-upgrade", Kind::Truth, "true"),
            Self::ImageMetadataUrl => ("image-metadata-url", Kind::Text, ""),
            Self::ImageStream => ("image-stream", Kind::Text, "released"),
            Self::LoggingConfig => ("logging-config", Kind::Text, "<root>=INFO"),
            Self::LxdSnapChannel => ("lxd-snap-channel", Kind::Text, "5.0/stable"),
            Self::NumContainerProvisionWorkers => ("num-container-provision-workers", Kind::Number, "4"),
            Self::NumProvisionWorkers => ("num-provision-workers", Kind::Number, "16"),
            Self::ProvisionerHarvestMode => ("provisioner-harvest-mode", Kind::Text, "destroyed"),
            Self::TestMode => ("test-mode", Kind::Truth, "false"),
            Self::TransmitVendorMetrics => ("transmit-vendor-metrics", Kind::Truth, "true"),
        };
        Rule { name, kind, default }
    }

    /// Returns the key as operators write it.
    pub fn as_str(self) -> &'static str {
        self.rule().name
    }

    /// Returns the default, as `model-config` shows it.
    pub fn default_value(self) -> Value {
        self.show(self.rule().default)
    }

    /// Parses a value into the form in which it is kept. Returns `None` if the kind is wrong or the value is too
    /// long.
    pub(super) fn read(self, text: &str) -> Option<String> {
        match self.rule().kind {
            Kind::Text => (text.len() <= MAX_VALUE).then(|| text.to_owned()),
            Kind::Truth => Some(truth::parse(text)?.to_string()),
            Kind::Number => Some(text.parse::<u32>().ok()?.to_string()),
        }
    }

    /// Returns a kept value as JSON.
    pub(super) fn show(self, text: &str) -> Value {
        match self.rule().kind {
            Kind::Text => text.into(),
            Kind::Truth => (text == "true").into(),
            Kind::Number => text.parse::<u32>().map_or_else(|_| text.into(), Value::from),
        }
    }

    /// Describes the values that are allowed.
    pub(super) fn expected(self) -> String {
        match self.rule().kind {
            Kind::Text => format!("a text of at most {MAX_VALUE} bytes"),
            Kind::Truth => "true or false".to_owned(),
            Kind::Number => "a number".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stored_under_the_names_that_people_write_and_in_their_order() {
        for key in KeptKey::ALL {
            assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
            assert!(key.read(key.rule().default).is_some(), "{}", key.as_str());
        }
        assert!(KeptKey::ALL.is_sorted_by_key(|key| key.as_str()));
    }

    #[test]
    fn a_value_is_bounded() {
        assert!(KeptKey::CloudinitUserdata.read(&"x".repeat(MAX_VALUE)).is_some());
        assert!(KeptKey::CloudinitUserdata.read(&"x".repeat(MAX_VALUE + 1)).is_none());
    }
}
