//! The charm's stored state for its unit (`docs/hook-model.md` 5.11). A hook reads its own writes; its commit keeps them.

use std::{collections::BTreeMap, ops::Bound};

use periapt_host_api::{relation::Settings, state::StateKey};

use crate::{
    CallError,
    context::{HookContext, HookRun},
};

/// The typed interface: `state`.
impl HookContext {
    /// Returns the value that the charm stored under a key.
    pub fn state_get(&mut self, key: &str) -> Option<String> {
        self.call("state.get", (key,), |run| run.state_value(key))
    }

    /// Returns all that the charm stored, sorted.
    pub fn state_get_all(&mut self) -> Settings {
        self.call("state.get-all", (), |run| run.state())
    }

    /// Stores values, all or none. Of a key that is given twice the last value counts.
    pub fn state_set(&mut self, changes: &[(String, String)]) -> Result<(), CallError> {
        self.call("state.set", (changes,), |run| {
            run.check_call(changes.iter().map(|(key, value)| key.len() + value.len()).sum())?;
            run.set_state(changes.iter().cloned().collect())
        })
    }

    /// Deletes a key, if it is present.
    pub fn state_delete(&mut self, key: &str) -> Result<(), CallError> {
        self.call("state.delete", (key,), |run| run.delete_state(key))
    }
}

impl HookRun {
    /// Returns the value of a key, with this hook's writes.
    pub(crate) fn state_value(&self, key: &str) -> Option<String> {
        if let Some(written) = self.effects.state().get(key) {
            return written.clone();
        }
        let key = StateKey { unit: self.snapshot.unit.clone(), key: key.to_owned() };
        self.snapshot.view.states.get(&key).map(|entry| entry.value.clone())
    }

    /// Returns all stored values, with this hook's writes.
    pub(crate) fn state(&self) -> Settings {
        let unit = &self.snapshot.unit;
        let first = StateKey { unit: unit.clone(), key: String::new() };
        let stored = self.snapshot.view.states.range((Bound::Included(first), Bound::Unbounded));
        let mut state: Settings = stored
            .take_while(|(key, _)| key.unit == *unit)
            .map(|(key, entry)| (key.key.clone(), entry.value.clone()))
            .collect();
        for (key, value) in self.effects.state() {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        state
    }

    /// Stores some values, all or none. The commit checks how much a unit may store (O11).
    pub(crate) fn set_state(&mut self, changes: Settings) -> Result<(), CallError> {
        if changes.contains_key("") {
            return Err(CallError::invalid("a key must not be empty"));
        }
        let changes: BTreeMap<_, _> = changes.into_iter().map(|(key, value)| (key, Some(value))).collect();
        self.effects.write_state(changes, &self.limits)
    }

    /// Deletes a key. An absent key needs no change.
    pub(crate) fn delete_state(&mut self, key: &str) -> Result<(), CallError> {
        match self.state_value(key) {
            None => Ok(()),
            Some(_) => self.effects.write_state([(key.to_owned(), None)].into(), &self.limits),
        }
    }
}
