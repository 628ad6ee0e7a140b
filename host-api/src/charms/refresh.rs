//! What another revision of a charm asks that the present one did not: told before anything is refreshed, by one
//! comparison for controller and command line (`hook-model.md` 1.10).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, Digest, EndpointName, Refusal, StorageName,
    charm::{CharmMeta, EndpointMeta, OptionType, StorageMeta},
    imports::Grant,
    settings::{OptionValue, OptionValues},
};

/// What a refresh would do, as the controller says it; nothing was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RefreshPlan {
    /// Which application.
    pub application: ApplicationName,
    /// `local:NAME-REV` of its present charm.
    pub from: String,
    /// That charm's archive.
    pub from_digest: Digest,
    /// The new charm's own name.
    pub to: String,
    /// The new charm's archive.
    pub to_digest: Digest,
    /// What is other than it was.
    pub difference: CharmDifference,
    /// What is in the way; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// What one charm asks and offers that the other did not. Texts for people are not compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct CharmDifference {
    /// Abilities beyond the sandbox.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub grants: Names<Grant>,
    /// Endpoints, by role, interface, limit and scope.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<EndpointName, Change<EndpointMeta>>,
    /// Names to bind that are no endpoints.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub extra_bindings: Names<String>,
    /// Storage.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<StorageName, Change<StorageMeta>>,
    /// Options, by type and default.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Change<OptionShape>>,
    /// What was set, and is dropped: the new charm does not know the option, or knows it by another type (M-7).
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
    /// New.
    pub added: BTreeSet<T>,
    /// Gone.
    pub removed: BTreeSet<T>,
}

/// How one thing differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change<T> {
    /// It is new.
    Added(T),
    /// It is gone.
    Removed(T),
    /// It is another.
    Changed {
        /// What it was.
        from: T,
        /// What it is.
        to: T,
    },
}

/// What of an option counts for what is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OptionShape {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// The value where none is set; none: unset.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the new charm asks for abilities that the old one did not ask for.
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
    /// Whether there are none of either.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl<T: Ord> Default for Names<T> {
    fn default() -> Self {
        Self { added: BTreeSet::new(), removed: BTreeSet::new() }
    }
}

/// What differs of all things of a kind, seen by what counts of them.
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
