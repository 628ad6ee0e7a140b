//! Values of charm options and of model configuration.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod crash;
mod kept;
mod key;
mod model;

pub use crash::{UnknownWorkloadCrash, WORKLOAD_CRASH, WorkloadCrash};
pub use kept::{KeptKey, KeptSettings};
pub use key::{MAX_SUBNETS, SettingKey, SettingValueError, UnknownSetting};
pub use model::{
    FailoverAfter, FirewallMode, ModelConfig, ModelSettings, UnknownFirewallMode, WorkloadQuota,
};

/// The value of one charm option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OptionValue {
    /// A value of type `string`.
    Text(String),
    /// A value of type `int`.
    Integer(i64),
    /// A value of type `float`.
    Number(f64),
    /// A value of type `boolean`.
    Boolean(bool),
    /// The URI of a secret, of type `secret`.
    Secret(String),
}

impl OptionValue {
    /// Returns the value as plain JSON, as hook tools and the command line show it.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) | Self::Secret(text) => text.clone().into(),
            Self::Integer(number) => (*number).into(),
            Self::Number(number) => (*number).into(),
            Self::Boolean(truth) => (*truth).into(),
        }
    }
}

/// Writes the value as on the command line.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Secret(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Boolean(truth) => truth.fmt(f),
        }
    }
}

/// A charm option that cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The charm has no such option.
    #[error("unknown option {name:?}; {}", known(.options))]
    Unknown {
        /// The name that the operator gave.
        name: String,
        /// The names of the charm's options.
        options: Vec<String>,
    },
    /// The text is no value of the option's type.
    #[error("option {name:?} expected {kind}, got {text:?}")]
    WrongType {
        /// The name of the option.
        name: String,
        /// The option's type.
        kind: &'static str,
        /// The text, shortened.
        text: String,
    },
}

/// The most options that a message names.
const NAMED: usize = 30;

fn known(options: &[String]) -> String {
    let named = options.get(..NAMED).unwrap_or(options).join(", ");
    match options.len() {
        0 => "the charm has no options".to_owned(),
        count if count > NAMED => format!("known are {named} and {} more", count - NAMED),
        _ => format!("known are {named}"),
    }
}

/// The option values that operators set on an application. The charm holds the defaults.
pub type OptionValues = BTreeMap<String, OptionValue>;
