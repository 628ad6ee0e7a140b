//! The differences between two states of one model, for views.

use std::{collections::BTreeSet, sync::Arc};

use periapt_host_api::{MachineId, RelationId, UnitName, relation::BagKey, secret::SecretId, status::Life};

use super::{ModelState, kinds::Changes, table::Change};
use crate::entity::{Application, Kind, Relation, Unit};

/// The old and the new state of an entity.
pub(crate) type Pair<'a, T> = (&'a Arc<T>, &'a Arc<T>);

/// The differences between two states.
#[derive(Debug, Default)]
pub(crate) struct StateDifferences<'a> {
    /// True if an application or relation was added or removed, or a charm changed. Views of other entities depend on
    /// those.
    pub(crate) structure: bool,
    /// Applications that changed.
    pub(crate) applications: Vec<Pair<'a, Application>>,
    /// Machines that were added, changed or removed.
    pub(crate) machines: Vec<MachineId>,
    /// Units that changed.
    pub(crate) units: Vec<Pair<'a, Unit>>,
    /// Units that were added.
    pub(crate) new_units: Vec<&'a Arc<Unit>>,
    /// Units that were removed, in their old state.
    pub(crate) gone_units: Vec<&'a Arc<Unit>>,
    /// Relations whose own entity changed.
    pub(crate) relations: Vec<RelationId>,
    /// Units whose membership in a scope was added, changed or removed.
    pub(crate) members: Vec<(RelationId, UnitName)>,
    /// Bags that were added, changed or removed.
    pub(crate) bags: Vec<BagKey>,
    /// Secrets that changed: themselves, their content, their expiry, or the units that track them.
    pub(crate) secrets: BTreeSet<SecretId>,
    /// All differences, kind by kind.
    pub(crate) all: Changes<'a>,
}

impl ModelState {
    /// Returns the differences to `newer`, a later state of the same model. Shared parts of the maps are skipped, so
    /// the cost depends on the size of the difference.
    pub(crate) fn differences<'a>(&'a self, newer: &'a Self) -> StateDifferences<'a> {
        let all = self.tables.changes(&newer.tables);
        // A relation that becomes dead is gone, except for the units that remember it.
        let stays = |change: &Change<'_, Relation>| {
            change.both().is_some_and(|(old, new)| old.life == new.life || new.life != Life::Dead)
        };
        let (stay, come_or_go): (Vec<_>, Vec<_>) = all.relations.iter().partition(|change| stays(change));
        let came = all.units.iter().filter(|change| change.old.is_none());
        let went = all.units.iter().filter(|change| change.new.is_none());
        let secrets = keys(&all.secrets).map(|secret| secret.id);
        let contents = keys(&all.contents).map(|content| content.id);
        let expiries = keys(&all.expiries).map(|expiry| expiry.id);
        let consumers = keys(&all.consumers).map(|consumer| consumer.id);
        StateDifferences {
            structure: !all.charms.is_empty()
                || !come_or_go.is_empty()
                || all.applications.iter().any(|change| change.both().is_none()),
            applications: all.applications.iter().filter_map(Change::both).collect(),
            machines: keys(&all.machines).map(|machine| machine.id).collect(),
            units: all.units.iter().filter_map(Change::both).collect(),
            new_units: came.filter_map(|change| change.new).collect(),
            gone_units: went.filter_map(|change| change.old).collect(),
            relations: stay.into_iter().filter_map(|change| Some(change.either()?.id)).collect(),
            members: keys(&all.members).map(|member| (member.relation, member.unit.clone())).collect(),
            bags: keys(&all.bags).map(|bag| bag.key.clone()).collect(),
            secrets: secrets.chain(contents).chain(expiries).chain(consumers).collect(),
            all,
        }
    }
}

/// Returns the changed entities in their new state, or else their old one, to take keys from.
fn keys<'a, V: Kind>(changes: &[Change<'a, V>]) -> impl Iterator<Item = &'a Arc<V>> {
    changes.iter().filter_map(Change::either)
}
