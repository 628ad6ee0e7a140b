//! Changes in a relation before a batch hook.

use super::harness::{Harness, Outcome, owned};
use super::state::{Text, apply};
use crate::{Charm, Event, Relation, RelationBatch};
use std::collections::{BTreeMap, BTreeSet};

/// The changes in a relation since its last hook, for a charm that asks for batches:
///
/// ```
/// # use periapt_sdk::testing::Batch;
/// let batch = Batch::new().join("app/0", &[("port", "80")]).change("app/1", &[("port", "")]).depart("app/2");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    joined: BTreeMap<String, Text>,
    changed: BTreeMap<String, Text>,
    departed: BTreeSet<String>,
    app: Option<Text>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a remote unit that came into view, with its bag.
    #[must_use]
    pub fn join(mut self, unit: &str, bag: &[(&str, &str)]) -> Self {
        self.joined.insert(unit.to_owned(), owned(bag).into_iter().collect());
        self
    }

    /// Adds a change of a member's bag. An empty value removes its key.
    #[must_use]
    pub fn change(mut self, unit: &str, bag: &[(&str, &str)]) -> Self {
        self.changed.insert(unit.to_owned(), owned(bag).into_iter().collect());
        self
    }

    /// Adds a member that went out of view. Its bag can still be read.
    #[must_use]
    pub fn depart(mut self, unit: &str) -> Self {
        self.departed.insert(unit.to_owned());
        self
    }

    /// Adds a change of the remote application's bag.
    #[must_use]
    pub fn change_app(mut self, bag: &[(&str, &str)]) -> Self {
        self.app = Some(owned(bag).into_iter().collect());
        self
    }
}

impl<C: Charm> Harness<C> {
    /// Applies all changes of a batch, and runs one hook for them.
    ///
    /// # Errors
    ///
    /// The hook's failure.
    pub fn batch(&mut self, relation: &Relation, batch: Batch) -> Outcome {
        self.state().check_relation(relation);
        for unit in batch.joined.keys() {
            self.state().check_remote_unit(relation, unit);
        }
        // A unit that joins in the batch may also change and depart in it.
        let known =
            batch.changed.keys().chain(&batch.departed).filter(|unit| !batch.joined.contains_key(*unit));
        for unit in known {
            self.state().check_member(relation, unit);
        }
        let app = self.remote(relation);
        let state = self.relation_mut(relation);
        for (unit, bag) in &batch.joined {
            state.members.insert(unit.clone());
            state.units.insert(unit.clone(), bag.clone());
        }
        for (unit, changes) in &batch.changed {
            let changes: Vec<_> = changes.clone().into_iter().collect();
            apply(state.units.entry(unit.clone()).or_default(), &changes);
        }
        for unit in &batch.departed {
            state.members.remove(unit);
        }
        let app_changed = batch.app.is_some();
        if let Some(changes) = batch.app {
            let changes: Vec<_> = changes.into_iter().collect();
            apply(state.applications.entry(app.clone()).or_default(), &changes);
        }
        self.run(Event::RelationBatch(RelationBatch {
            relation: relation.clone(),
            app,
            app_changed,
            joined: batch.joined.into_keys().collect(),
            changed: batch.changed.into_keys().collect(),
            departed: batch.departed.into_iter().collect(),
        }))
    }
}
