//! The differences between two revisions of a charm, shown before a refresh. The controller and the command line use
//! the same comparison (`docs/hook-model.md` 1.10).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, Digest, EndpointName, Refusal, StorageName,
    charm::{CharmMeta, EndpointMeta, OptionType, StorageMeta},
    imports::Grant,
    settings::{OptionValue, OptionValues},
};

/// The plan of a refresh, from the controller. The plan changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RefreshPlan {
    /// The application.
    pub application: ApplicationName,
    /// The present charm, as `local:NAME-REV`.
    pub from: String,
    /// The digest of the present charm's archive.
    pub from_digest: Digest,
    /// The new charm's own name.
    pub to: String,
    /// The digest of the new charm's archive.
    pub to_digest: Digest,
    /// The differences between the charms.
    pub difference: CharmDifference,
    /// The reason that the controller would refuse the refresh. `None` means that it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// The differences between two charms. Texts for people are not compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct CharmDifference {
    /// Abilities beyond the sandbox.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub grants: Names<Grant>,
    /// Endpoints, by role, interface, limit and scope.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<EndpointName, Change<EndpointMeta>>,
    /// Extra bindings.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub extra_bindings: Names<String>,
    /// Storage.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<StorageName, Change<StorageMeta>>,
    /// Options, by type and default.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Change<OptionShape>>,
    /// Settings that the refresh drops: the new charm does not know the option, or knows it by another type (M-7).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped_settings: OptionValues,
    /// Actions.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub actions: Names<String>,
}

/// Names that are new, and names that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Names<T: Ord> {
    /// Names that only the new charm has.
    pub added: BTreeSet<T>,
    /// Names that only the old charm has.
    pub removed: BTreeSet<T>,
}

/// A difference in one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change<T> {
    /// The item is new.
    Added(T),
    /// The item is gone.
    Removed(T),
    /// The item differs.
    Changed {
        /// The old item.
        from: T,
        /// The new item.
        to: T,
    },
}

/// The parts of an option on which settings depend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OptionShape {
    /// The option's type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// The default. `None` means that the option is unset by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<OptionValue>,
}

impl CharmDifference {
    /// Compares two charms for an application with these settings.
    pub fn between(old: &CharmMeta, new: &CharmMeta, settings: &OptionValues) -> Self {
        let kept = new.kept_settings(settings);
        let dropped = |(name, _): &(&String, &OptionValue)| !kept.contains_key(*name);
        let owned = |(name, value): (&String, &OptionValue)| (name.clone(), value.clone());
        let actions = |meta: &CharmMeta| meta.actions.keys().cloned().collect::<BTreeSet<_>>();
        Self {
            grants: Names::between(&old.grants, &new.grants),
            endpoints: changes(&old.endpoints, &new.endpoints, |endpoint| EndpointMeta {
                optional: false,
                ..endpoint.clone()
            }),
            extra_bindings: Names::between(&old.extra_bindings, &new.extra_bindings),
            storage: changes(&old.storage, &new.storage, |storage| StorageMeta {
                description: String::new(),
                ..storage.clone()
            }),
            options: changes(&old.options, &new.options, |option| OptionShape {
                kind: option.kind,
                default: option.default.clone(),
            }),
            dropped_settings: settings.iter().filter(dropped).map(owned).collect(),
            actions: Names::between(&actions(old), &actions(new)),
        }
    }

    /// Returns true if there are no differences.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the new charm asks for abilities that the old one did not ask for.
    pub fn widens_grants(&self) -> bool {
        !self.grants.added.is_empty()
    }
}

impl<T: Ord + Clone> Names<T> {
    fn between(old: &BTreeSet<T>, new: &BTreeSet<T>) -> Self {
        Self {
            added: new.difference(old).cloned().collect(),
            removed: old.difference(new).cloned().collect(),
        }
    }
}

impl<T: Ord> Names<T> {
    /// Returns true if no names are new or gone.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl<T: Ord> Default for Names<T> {
    fn default() -> Self {
        Self { added: BTreeSet::new(), removed: BTreeSet::new() }
    }
}

/// Compares two maps of items by the parts that `shape` returns.
fn changes<K: Ord + Clone, T, S: PartialEq>(
    old: &BTreeMap<K, T>,
    new: &BTreeMap<K, T>,
    shape: impl Fn(&T) -> S,
) -> BTreeMap<K, Change<S>> {
    let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
    let gone = gone.map(|(name, thing)| (name.clone(), Change::Removed(shape(thing))));
    let there = new.iter().filter_map(|(name, thing)| {
        let to = shape(thing);
        let change = match old.get(name).map(&shape) {
            None => Change::Added(to),
            Some(from) if from != to => Change::Changed { from, to },
            Some(_) => return None,
        };
        Some((name.clone(), change))
    });
    gone.chain(there).collect()
}

#[cfg(test)]
mod tests;
