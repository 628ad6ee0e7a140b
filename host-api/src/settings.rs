//! Values of charm options and of model configuration.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::BudgetSettings;

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

/// Model configuration that the engine reads (`hook-model.md` 7.9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ModelConfig {
    /// Seconds between update-status hooks, before jitter; 0 is off, else 60 to 3,600.
    pub update_status_hook_interval: u32,
    /// Whether a failed hook is run again by itself.
    pub automatically_retry_hooks: bool,
    /// Seconds for which ended tasks and their results are kept.
    pub max_action_results_age: u32,
    /// MiB of parameters, messages and results that are kept, over all ended tasks; the oldest go first.
    pub max_action_results_size: u32,
    /// How long status history is kept, in seconds.
    pub max_status_history_age: u32,
    /// How much status history is kept, in MiB.
    pub max_status_history_size: u32,
    /// The most that an instance of storage takes because its charm says so, in MiB: past it, its operator must.
    pub storage_default_max_size: u32,
    /// What hooks may use, of applications that do not say otherwise.
    #[serde(skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            update_status_hook_interval: 300,
            automatically_retry_hooks: true,
            max_action_results_age: 336 * 3600,
            max_action_results_size: 5 << 10,
            max_status_history_age: 336 * 3600,
            max_status_history_size: 5 << 10,
            storage_default_max_size: 16 << 10,
            budgets: BudgetSettings::default(),
        }
    }
}

/// Reads a duration as people write it in settings, in seconds: `90s`, `5m`, `1h`, `1m30s`; a bare `0`.
pub fn seconds(text: &str) -> Option<u32> {
    if text == "0" {
        return Some(0);
    }
    let (mut total, mut number) = (0_u32, String::new());
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let factor = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u32>().ok()?.checked_mul(factor)?)?;
        number.clear();
    }
    (number.is_empty() && !text.is_empty()).then_some(total)
}
