//! The parser of `assumes`.

use std::fmt;

use serde_json::Value;

use super::{Assumes, Assumption, FeatureAssumption, FeatureName, FeatureVersion, VersionBound};
use crate::{excerpt::shortened, rule::BrokenRule};

/// The most conditions and groups of one charm together. Each may add a line to a refusal, which must stay readable;
/// public charms have up to a dozen.
const MAX_CONDITIONS: usize = 64;

/// The deepest nesting of groups: public charms use two levels. The parser recurses once for each level.
const MAX_DEPTH: usize = 8;

/// The grammar of a condition, for errors.
const EXPECTED: &str = "a feature such as k8s-api, a feature with a version such as \"juju >= 3.6\" or \"juju < 4\", or a group any-of or all-of is expected";

impl Assumes {
    /// Parses the section. The error names the wrong condition and the grammar.
    pub(in crate::charms::charm) fn parse(raw: Option<&Value>) -> Result<Self, BrokenRule> {
        let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Ok(Self::default()) };
        let Value::Array(conditions) = raw else {
            return Err(format!("assumes: a list is expected, and in it conditions: {EXPECTED}").into());
        };
        let mut left = MAX_CONDITIONS;
        let conditions = list(conditions, 0, &mut left).map_err(|broken| broken.at("assumes"))?;
        Ok(Self(conditions))
    }
}

fn list(conditions: &[Value], depth: usize, left: &mut usize) -> Result<Vec<Assumption>, BrokenRule> {
    if depth > MAX_DEPTH {
        return Err(format!("groups lie more than {MAX_DEPTH} deep in each other").into());
    }
    *left = left
        .checked_sub(conditions.len())
        .ok_or_else(|| format!("there are more than {MAX_CONDITIONS} conditions"))?;
    conditions.iter().map(|condition| one(condition, depth, left)).collect()
}

fn one(condition: &Value, depth: usize, left: &mut usize) -> Result<Assumption, BrokenRule> {
    match condition {
        Value::String(text) => feature(text).map(Assumption::Feature),
        Value::Object(group) => {
            let mut entries = group.iter();
            let (Some((name, inner)), None) = (entries.next(), entries.next()) else {
                return Err(format!("a group has one name, any-of or all-of, and not {}", group.len()).into());
            };
            let make = match name.as_str() {
                "any-of" => Assumption::AnyOf,
                "all-of" => Assumption::AllOf,
                _ => {
                    return Err(
                        format!("invalid group {:?}: any-of or all-of is expected", shortened(name)).into()
                    );
                }
            };
            match inner {
                Value::Array(inner) if !inner.is_empty() => list(inner, depth + 1, left).map(make),
                _ => Err(format!("{name}: a list of at least one condition is expected").into()),
            }
        }
        other => Err(format!("invalid condition {:?}: {EXPECTED}", shortened(&other.to_string())).into()),
    }
}

/// Parses `NAME`, `NAME >= VERSION` or `NAME < VERSION`.
fn feature(text: &str) -> Result<FeatureAssumption, BrokenRule> {
    let wrong =
        |error: &dyn fmt::Display| BrokenRule::of(error).at(format_args!("condition {:?}", shortened(text)));
    let condition = text.trim();
    let name_ends = condition.find(['<', '>', '=', '!', '~', ' ', '\t']).unwrap_or(condition.len());
    let (name, bound) = condition.split_at(name_ends);
    let name = FeatureName::new(name).map_err(|error| wrong(&error))?;
    let bound = bound.trim_start();
    if bound.is_empty() {
        return Ok(FeatureAssumption { name, version: None });
    }
    let version = |text: &str| text.trim_start().parse::<FeatureVersion>().map_err(|error| wrong(&error));
    let bound = match (bound.strip_prefix(">="), bound.strip_prefix('<')) {
        (Some(least), _) => VersionBound::AtLeast(version(least)?),
        (None, Some(most)) if !most.starts_with('=') => VersionBound::Below(version(most)?),
        _ => return Err(wrong(&"versions are compared by >= or <, and by nothing else")),
    };
    Ok(FeatureAssumption { name, version: Some(bound) })
}
