//! Values of charm options and of model configuration.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod kept;
mod key;
mod model;

pub use kept::{KeptKey, KeptSettings};
pub use key::{MAX_SUBNETS, SettingKey, SettingValueError, UnknownSetting};
pub use model::{FirewallMode, ModelConfig, ModelSettings, UnknownFirewallMode};

/// The value of one charm option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OptionValue {
    /// `string`
    Text(String),
    /// `int`
    Integer(i64),
    /// `float`
    Number(f64),
    /// `boolean`
    Boolean(bool),
    /// `secret`: its URI.
    Secret(String),
}

impl OptionValue {
    /// The value as plain JSON, the way hook tools and the command line show it.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) | Self::Secret(text) => text.clone().into(),
            Self::Integer(number) => (*number).into(),
            Self::Number(number) => (*number).into(),
            Self::Boolean(truth) => (*truth).into(),
        }
    }
}

/// As a person would write it on the command line.
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

/// Why a setting cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The charm has no such option.
    #[error("unknown option {name:?}; {}", known(.options))]
    Unknown {
        /// What was named.
        name: String,
        /// What the charm has.
        options: Vec<String>,
    },
    /// The text is no value of the option's type.
    #[error("option {name:?} expected {kind}, got {text:?}")]
    WrongType {
        /// Which option.
        name: String,
        /// Its type.
        kind: &'static str,
        /// What was given, shortened.
        text: String,
    },
}

/// How many options a message names.
const NAMED: usize = 30;

fn known(options: &[String]) -> String {
    let named = options.get(..NAMED).unwrap_or(options).join(", ");
    match options.len() {
        0 => "the charm has no options".to_owned(),
        count if count > NAMED => format!("known are {named} and {} more", count - NAMED),
        _ => format!("known are {named}"),
    }
}

/// Settings of an application: only what was set; defaults stand in the charm.
pub type OptionValues = BTreeMap<String, OptionValue>;
