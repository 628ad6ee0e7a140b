//! Indexes and sums that are derived from the entities of a model. The declaration of each kind says what it adds
//! ([`kinds`](crate::entity::kinds)).

use imbl::{OrdMap, OrdSet};
use periapt_host_api::{
    AgentName, ApplicationName, MachineId, RelationId, StorageId, TaskId, Timestamp, UnitName,
    relation::BagKey,
    secret::{SecretId, SecretOwner, SecretReader, SecretRevision},
};

use super::hosted::Hosted;
use crate::{
    entity::{CrossModelId, WorkId},
    root::index::Index,
};

/// The event at a time that a secret waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SecretDue {
    /// The rotation of the secret.
    Rotate,
    /// The expiry of a revision.
    Expire(SecretRevision),
}

/// All derived data of a model.
#[derive(Debug, Clone, Default)]
pub(super) struct Derived {
    pub(super) machines_of: Index<AgentName, MachineId>,
    pub(super) units_on: Index<MachineId, UnitName>,
    pub(super) unplaced: OrdSet<UnitName>,
    pub(super) subordinates_of: Index<UnitName, UnitName>,
    pub(super) relations_of: Index<ApplicationName, RelationId>,
    /// The cross-model relations, by their common id.
    pub(super) crossings: Index<CrossModelId, RelationId>,
    /// The counts of what each agent hosts, by the machines of the units.
    pub(super) hosted: Hosted,
    pub(super) scopes_of: Index<UnitName, RelationId>,
    /// The bags of the units in each principal's container.
    pub(super) contained_bags: Index<UnitName, BagKey>,
    /// Work items by due time. Those without one are due at once.
    pub(super) work_due: OrdSet<(Option<Timestamp>, WorkId)>,
    pub(super) open_tasks: Index<UnitName, TaskId>,
    pub(super) ended_tasks: OrdSet<(Timestamp, TaskId)>,
    pub(super) ended_memory: Sum,
    pub(super) ended_records: Sum,
    pub(super) storages_of: Index<UnitName, StorageId>,
    pub(super) storages_at: Index<AgentName, StorageId>,
    pub(super) owned_by: Index<SecretOwner, SecretId>,
    pub(super) granted_to: Index<SecretReader, SecretId>,
    pub(super) consumed_by: Index<UnitName, SecretId>,
    pub(super) secrets_due: OrdSet<(Timestamp, SecretId, SecretDue)>,
    pub(super) secret_bytes: Sum,
    /// The units of each application that are there or have numbers.
    pub(super) unit_counts: UnitCounts,
}

/// The number of units of each application. Applications without units are not among them.
#[derive(Debug, Clone, Default)]
pub(super) struct UnitCounts(pub(super) OrdMap<ApplicationName, u64>);

/// A sum over entities.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(pub(super) u64);

/// Converts a size to the type of sums.
pub(super) fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Derived data that is made of parts, each from one entity.
pub(super) trait Aggregate {
    /// The part that one entity adds.
    type Part: PartialEq;

    /// Adds a part.
    fn add(&mut self, part: Self::Part);

    /// Removes a part.
    fn take(&mut self, part: &Self::Part);
}

impl<K: Clone + Ord, V: Clone + Ord> Aggregate for Index<K, V> {
    type Part = (K, V);
    fn add(&mut self, (key, value): (K, V)) {
        self.insert(key, value);
    }
    fn take(&mut self, (key, value): &(K, V)) {
        self.remove(key, value);
    }
}

impl<V: Clone + Ord> Aggregate for OrdSet<V> {
    type Part = V;
    fn add(&mut self, value: V) {
        self.insert(value);
    }
    fn take(&mut self, value: &V) {
        self.remove(value);
    }
}

impl Aggregate for Sum {
    type Part = u64;
    fn add(&mut self, number: u64) {
        self.0 = self.0.saturating_add(number);
    }
    fn take(&mut self, number: &u64) {
        self.0 = self.0.saturating_sub(*number);
    }
}

impl Aggregate for UnitCounts {
    type Part = (ApplicationName, u64);
    fn add(&mut self, (application, units): (ApplicationName, u64)) {
        let count = self.0.entry(application).or_default();
        *count = count.saturating_add(units);
    }
    fn take(&mut self, (application, units): &(ApplicationName, u64)) {
        if let Some(count) = self.0.get_mut(application) {
            *count = count.saturating_sub(*units);
            if *count == 0 {
                self.0.remove(application);
            }
        }
    }
}

/// Replaces the parts of an entity's old state by those of its new state. Writes nothing if the parts are equal.
pub(super) fn derive<'a, D: Aggregate, V, Parts: IntoIterator<Item = D::Part>>(
    derived: &mut D,
    old: Option<&'a V>,
    new: Option<&'a V>,
    parts: impl Fn(&'a V) -> Parts,
) {
    if let (Some(old), Some(new)) = (old, new)
        && parts(old).into_iter().eq(parts(new))
    {
        return;
    }
    for part in old.into_iter().flat_map(&parts) {
        derived.take(&part);
    }
    for part in new.into_iter().flat_map(&parts) {
        derived.add(part);
    }
}
