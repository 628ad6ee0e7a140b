//! Bounds on the cost of checks: the controller's single writer runs them on untrusted schemas and values.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::{Mismatch, pattern_within};

/// The most steps of the checks of one request: a tenth of a second, at most.
const MAX_STEPS: u32 = 200_000;

/// The number of bytes that are compared, counted or copied in one step.
const BYTES_PER_STEP: usize = 256;

/// The steps of compiling a pattern, beside its length.
const PATTERN_STEPS: u32 = 2_000;

/// Sizes of compiled patterns, in bytes, and the most steps of a match for each byte of the text: the worst patterns
/// visit each of their states at each byte.
const PATTERN_PRICES: [(usize, u32); 3] = [(8 << 10, 3), (32 << 10, 12), (super::PATTERN_BYTES, 96)];

/// The most compiled patterns that are kept for the next value.
const MAX_PATTERNS: usize = 16;

/// The effort that remains for the checks of one request. Once it is used up, every check fails.
#[derive(Debug)]
pub struct ValidationBudget {
    steps: u32,
    patterns: BTreeMap<String, (Regex, u32)>,
}

impl Default for ValidationBudget {
    fn default() -> Self {
        Self { steps: MAX_STEPS, patterns: BTreeMap::new() }
    }
}

impl ValidationBudget {
    /// Spends steps.
    pub(crate) fn spend(&mut self, steps: u32) -> Result<(), Mismatch> {
        self.steps = self.steps.saturating_sub(steps);
        if self.steps == 0 { Err(Mismatch::TooLong) } else { Ok(()) }
    }

    /// Spends the steps for some bytes.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Mismatch> {
        self.spend(steps(bytes / BYTES_PER_STEP).saturating_add(1))
    }

    /// Spends the steps for comparing a value with some others.
    pub(super) fn spend_comparisons(&mut self, value: &Value, others: usize) -> Result<(), Mismatch> {
        self.spend(weight(value).saturating_mul(steps(others)))
    }

    /// Returns true if a text matches a pattern. A pattern that does not compile matches nothing; no checked schema
    /// has one.
    pub(super) fn matches(&mut self, pattern: &str, text: &str) -> Result<bool, Mismatch> {
        let (matches, price) = match self.patterns.get(pattern) {
            Some((regex, price)) => {
                let bytes = steps(text.len()).saturating_mul(*price);
                // The steps are spent before the match.
                if bytes >= self.steps {
                    return self.spend(bytes).map(|()| false);
                }
                (regex.is_match(text), bytes)
            }
            None => {
                self.spend(PATTERN_STEPS.saturating_add(steps(pattern.len())))?;
                let compiled = PATTERN_PRICES
                    .into_iter()
                    .find_map(|(bytes, price)| Some((pattern_within(pattern, bytes).ok()?, price)));
                let Some(compiled) = compiled else { return Ok(false) };
                if self.patterns.len() >= MAX_PATTERNS {
                    self.patterns.clear();
                }
                self.patterns.insert(pattern.to_owned(), compiled);
                return self.matches(pattern, text);
            }
        };
        self.spend(price.saturating_add(1))?;
        Ok(matches)
    }
}

fn steps(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the steps for a visit of the whole value.
pub(super) fn weight(value: &Value) -> u32 {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => steps(text.len() / BYTES_PER_STEP),
        Value::Array(items) => items.iter().fold(0, |sum: u32, item| sum.saturating_add(weight(item))),
        Value::Object(object) => object.iter().fold(0, |sum: u32, (key, value)| {
            sum.saturating_add(steps(key.len() / BYTES_PER_STEP)).saturating_add(weight(value))
        }),
    };
    inner.saturating_add(1)
}
