//! Assumptions of a charm that the model does not meet, in Juju's words.

use std::{collections::BTreeSet, fmt};

use super::{Assumption, FeatureAssumption, FeatureName, FeatureVersion};

/// Descriptions of features that models lack here, for people.
const ABSENT: [(&str, &str); 1] =
    [("k8s-api", "the API of a Kubernetes cluster; units here run in sandboxes, and in no cluster")];

/// Assumptions that do not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetAssumptions(Vec<Unmet>);

/// An unmet assumption, with its unmet parts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unmet {
    Feature(FeatureAssumption),
    AnyOf(Vec<Unmet>),
    AllOf(Vec<Unmet>),
}

impl UnmetAssumptions {
    /// Finds the assumptions that do not hold.
    pub(super) fn among(assumptions: &[Assumption]) -> Result<(), Self> {
        let unmet: Vec<_> = assumptions.iter().filter_map(Unmet::of).collect();
        if unmet.is_empty() { Ok(()) } else { Err(Self(unmet)) }
    }

    /// Lists the unmet features, each once: `k8s-api`, `juju >= 4.0.0 (here: 3.6.26)`.
    pub fn features(&self) -> Vec<String> {
        let mut lines = Vec::new();
        each(&self.0, &mut |assumed| {
            let bound = assumed.version.map(|bound| format!(" {bound}")).unwrap_or_default();
            let here = assumed.name.supported().map(|there| format!(" (here: {})", there.version));
            let line = format!("{}{bound}{}", assumed.name, here.unwrap_or_default());
            if !lines.contains(&line) {
                lines.push(line);
            }
        });
        lines
    }
}

impl Unmet {
    fn of(assumption: &Assumption) -> Option<Self> {
        match assumption {
            Assumption::Feature(assumed) => (!holds(assumed)).then(|| Self::Feature(assumed.clone())),
            Assumption::AllOf(all) => {
                let unmet: Vec<_> = all.iter().filter_map(Self::of).collect();
                (!unmet.is_empty()).then_some(Self::AllOf(unmet))
            }
            Assumption::AnyOf(any) => {
                let unmet: Vec<_> = any.iter().filter_map(Self::of).collect();
                (unmet.len() == any.len()).then_some(Self::AnyOf(unmet))
            }
        }
    }
}

fn holds(assumed: &FeatureAssumption) -> bool {
    let Some(there) = assumed.name.supported() else { return false };
    let version = there.version.parse::<FeatureVersion>();
    assumed.version.is_none_or(|bound| version.is_ok_and(|version| bound.admits(version)))
}

fn each(unmet: &[Unmet], visit: &mut impl FnMut(&FeatureAssumption)) {
    for one in unmet {
        match one {
            Unmet::Feature(assumed) => visit(assumed),
            Unmet::AnyOf(inner) | Unmet::AllOf(inner) => each(inner, visit),
        }
    }
}

impl fmt::Display for UnmetAssumptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Charm feature requirements cannot be met:")?;
        write_list(f, &self.0, 1)?;
        let mut names = BTreeSet::new();
        each(&self.0, &mut |assumed| {
            names.extend(description(&assumed.name).map(|text| (assumed.name.to_string(), text)));
        });
        if !names.is_empty() {
            write!(f, "\n\nFeature descriptions:")?;
        }
        names.iter().try_for_each(|(name, text)| write!(f, "\n  - {name:?}: {text}"))
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, unmet: &[Unmet], depth: usize) -> fmt::Result {
    for one in unmet {
        write!(f, "\n{}- charm requires ", "  ".repeat(depth))?;
        match one {
            Unmet::Feature(assumed) => write_feature(f, assumed)?,
            Unmet::AnyOf(inner) => {
                write!(f, "at least one of the following:")?;
                write_list(f, inner, depth + 1)?;
            }
            Unmet::AllOf(inner) => {
                write!(f, "all of the following:")?;
                write_list(f, inner, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn write_feature(f: &mut fmt::Formatter<'_>, assumed: &FeatureAssumption) -> fmt::Result {
    write!(f, "feature {:?}", assumed.name.as_str())?;
    if let Some(bound) = assumed.version {
        write!(f, " (version {bound})")?;
    }
    match assumed.name.supported() {
        Some(there) => write!(f, " but model currently supports version {}", there.version),
        None => write!(f, " but model does not support it"),
    }
}

fn description(name: &FeatureName) -> Option<&'static str> {
    let absent = || ABSENT.into_iter().find(|(absent, _)| *absent == name.as_str()).map(|(_, text)| text);
    name.supported().map(|there| there.description).or_else(absent)
}
