//! What checking may cost: the controller's single writer does it, for strangers.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::{Mismatch, pattern_within};

/// How many steps the checks of one request may take: a tenth of a second, at most.
const MAX_STEPS: u32 = 200_000;

/// So many bytes that are compared, counted or copied are a step.
const BYTES_PER_STEP: usize = 256;

/// What compiling a pattern costs beside its length.
const PATTERN_STEPS: u32 = 2_000;

/// Sizes of compiled patterns, in bytes, and what matching costs at most for each byte of the text, in steps: the
/// worst of patterns visits each of its states at each byte.
const PATTERN_PRICES: [(usize, u32); 3] = [(8 << 10, 3), (32 << 10, 12), (super::PATTERN_BYTES, 96)];

/// How many compiled patterns are kept for the next value.
const MAX_PATTERNS: usize = 16;

/// What the checks of one request may still cost. Once it is used up, nothing passes any more.
#[derive(Debug)]
pub struct Effort {
    steps: u32,
    patterns: BTreeMap<String, (Regex, u32)>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { steps: MAX_STEPS, patterns: BTreeMap::new() }
    }
}

impl Effort {
    /// Pays for some steps.
    pub(crate) fn spend(&mut self, steps: u32) -> Result<(), Mismatch> {
        self.steps = self.steps.saturating_sub(steps);
        if self.steps == 0 { Err(Mismatch::TooLong) } else { Ok(()) }
    }

    /// Pays for so many bytes.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Mismatch> {
        self.spend(steps(bytes / BYTES_PER_STEP).saturating_add(1))
    }

    /// Pays for comparing a value with some others.
    pub(super) fn spend_comparisons(&mut self, value: &Value, others: usize) -> Result<(), Mismatch> {
        self.spend(weight(value).saturating_mul(steps(others)))
    }

    /// Whether a text matches a pattern. One that does not compile matches nothing; no checked schema has such.
    pub(super) fn matches(&mut self, pattern: &str, text: &str) -> Result<bool, Mismatch> {
        let (matches, price) = match self.patterns.get(pattern) {
            Some((regex, price)) => {
                let bytes = steps(text.len()).saturating_mul(*price);
                // Paid for before it is done.
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

/// What looking at all of a value costs.
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
