//! What differs between two states of one model. Shared parts are passed over unseen, so the cost is that of
//! the difference.

use std::{collections::BTreeSet, sync::Arc};

use imbl::{OrdMap, ordmap::DiffItem};
use periapt_host_api::{
    MachineId, RelationId, StorageId, TaskId, UnitName,
    relation::{BagKey, BagOwner},
    secret::SecretId,
    state::StateKey,
    status::Life,
};

use super::ModelState;
use crate::entity::{Application, PendingEvents, StateEntry, Task, Unit};

/// An entity as it was, and as it is.
pub(crate) type Change<'a, T> = (&'a Arc<T>, &'a Arc<T>);

/// What differs between two states, as far as anybody sees it.
#[derive(Debug, Default)]
pub(crate) struct Touched<'a> {
    /// Something came or went that others are seen through: an application, a relation, a charm.
    pub(crate) structure: bool,
    /// Applications that changed.
    pub(crate) applications: Vec<Change<'a, Application>>,
    /// Machines that came, changed or went.
    pub(crate) machines: Vec<MachineId>,
    /// Units that changed.
    pub(crate) units: Vec<Change<'a, Unit>>,
    /// Units that came.
    pub(crate) new_units: Vec<&'a Arc<Unit>>,
    /// Units that went, as they were.
    pub(crate) gone_units: Vec<&'a Arc<Unit>>,
    /// Keys of units' state that were written, and what they hold now; none: nothing.
    pub(crate) states: Vec<(StateKey, Option<&'a Arc<StateEntry>>)>,
    /// Units that wait for other events than before, and for which now; none: for none.
    pub(crate) events: Vec<(UnitName, Option<&'a Arc<PendingEvents>>)>,
    /// Relations that changed themselves.
    pub(crate) relations: Vec<RelationId>,
    /// Who entered a scope, was marked in it, or left it.
    pub(crate) members: Vec<(RelationId, UnitName)>,
    /// Bags that came, changed or went.
    pub(crate) bags: Vec<BagKey>,
    /// Tasks that came, changed or went, as they are now.
    pub(crate) tasks: Vec<(TaskId, Option<&'a Arc<Task>>)>,
    /// Storage that came, went or changed.
    pub(crate) storages: Vec<&'a StorageId>,
    /// Secrets that changed themselves, in their content, or in who tracks them.
    pub(crate) secrets: BTreeSet<SecretId>,
}

impl ModelState {
    /// What differs in `newer`, a later state of the same model.
    pub(crate) fn touched<'a>(&'a self, newer: &'a Self) -> Touched<'a> {
        let mut touched = Touched {
            structure: self.charms.diff(&newer.charms).next().is_some(),
            machines: self.machines.diff(&newer.machines).map(|item| *key_of(item)).collect(),
            ..Touched::default()
        };
        for item in self.applications.diff(&newer.applications) {
            match item {
                DiffItem::Update { old: (_, old), new: (_, new) } => touched.applications.push((old, new)),
                DiffItem::Add(..) | DiffItem::Remove(..) => touched.structure = true,
            }
        }
        for item in self.units.diff(&newer.units) {
            match item {
                DiffItem::Update { old: (_, old), new: (_, new) } => touched.units.push((old, new)),
                DiffItem::Add(_, unit) => touched.new_units.push(unit),
                DiffItem::Remove(_, unit) => touched.gone_units.push(unit),
            }
        }
        for item in self.relations.diff(&newer.relations) {
            match item {
                // One that comes to be dead is gone for all but a few.
                DiffItem::Update { old: (_, old), new: (id, new) }
                    if old.life == new.life || new.life != Life::Dead =>
                {
                    touched.relations.push(*id);
                }
                DiffItem::Update { .. } | DiffItem::Add(..) | DiffItem::Remove(..) => {
                    touched.structure = true;
                }
            }
        }
        each_nested(&self.members, &newer.members, |id, unit| touched.members.push((*id, unit.clone())));
        for item in self.tasks.diff(&newer.tasks) {
            touched.tasks.push(match item {
                DiffItem::Add(id, task) | DiffItem::Update { new: (id, task), .. } => (*id, Some(task)),
                DiffItem::Remove(id, _) => (*id, None),
            });
        }
        for item in self.events.diff(&newer.events) {
            touched.events.push(match item {
                DiffItem::Add(unit, events) | DiffItem::Update { new: (unit, events), .. } => {
                    (unit.clone(), Some(events))
                }
                DiffItem::Remove(unit, _) => (unit.clone(), None),
            });
        }
        touched.storages.extend(self.storages.diff(&newer.storages).map(key_of));
        let bag = |id: &RelationId, owner: &BagOwner| BagKey { relation: *id, owner: owner.clone() };
        each_nested(&self.bags, &newer.bags, |id, owner| touched.bags.push(bag(id, owner)));
        self.touched_states(newer, &mut touched);
        self.secrets.touched(&newer.secrets, &mut touched.secrets);
        touched
    }

    fn touched_states<'a>(&'a self, newer: &'a Self, touched: &mut Touched<'a>) {
        let nothing = OrdMap::new();
        for item in self.states.diff(&newer.states) {
            let (unit, old, new) = match item {
                DiffItem::Update { old: (unit, old), new: (_, new) } => (unit, old, Some(new)),
                DiffItem::Add(unit, new) => (unit, &nothing, Some(new)),
                DiffItem::Remove(unit, old) => (unit, old, None),
            };
            let key = |key: &String| StateKey { unit: unit.clone(), key: key.clone() };
            let gone = old.keys().filter(|key| new.is_none_or(|new| !new.contains_key(*key)));
            touched.states.extend(gone.map(|gone| (key(gone), None)));
            let Some(new) = new else { continue };
            let differs = |name: &str, entry: &Arc<StateEntry>| {
                old.get(name).is_none_or(|old| !Arc::ptr_eq(old, entry))
            };
            let written = new.iter().filter(|(name, entry)| differs(name, entry));
            touched.states.extend(written.map(|(name, entry)| (key(name), Some(entry))));
        }
    }
}

/// The key of what differs.
fn key_of<'a, K, V>(item: DiffItem<'a, 'a, K, V>) -> &'a K {
    match item {
        DiffItem::Add(key, _) | DiffItem::Remove(key, _) | DiffItem::Update { new: (key, _), .. } => key,
    }
}

/// Names what differs in a map of maps.
fn each_nested<K, I, V>(
    old: &OrdMap<K, OrdMap<I, V>>,
    new: &OrdMap<K, OrdMap<I, V>>,
    mut differs: impl FnMut(&K, &I),
) where
    K: Ord,
    I: Ord,
    V: PartialEq,
{
    let nothing = OrdMap::new();
    for item in old.diff(new) {
        let (key, old, new) = match item {
            DiffItem::Update { old: (key, old), new: (_, new) } => (key, old, new),
            DiffItem::Add(key, new) => (key, &nothing, new),
            DiffItem::Remove(key, old) => (key, old, &nothing),
        };
        old.diff(new).for_each(|item| differs(key, key_of(item)));
    }
}
