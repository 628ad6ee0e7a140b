//! The stored state of a unit.

use crate::{Error, Result, host};
use std::collections::BTreeMap;

/// The unit's stored state: texts by key. A hook's writes take effect when it succeeds, and the state is removed with
/// the unit. Only this unit sees it. A unit has at most 4,096 keys of up to 256 bytes, values of up to 64 KiB, and 2
/// MiB in all; a hook that stores more fails at its commit.
#[derive(Debug)]
pub struct State(());

impl State {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// Returns the value of a key, this hook's writes included.
    pub fn get(&self, key: &str) -> Option<String> {
        host::state::get(key)
    }

    /// Returns all keys and values.
    pub fn all(&self) -> BTreeMap<String, String> {
        host::state::get_all().into_iter().collect()
    }

    /// Stores a value; an empty value counts as a value.
    ///
    /// # Errors
    ///
    /// When the hook's effects exceed the bound of a commit.
    pub fn set(&self, key: impl Into<String>, value: impl Into<String>) -> Result {
        self.set_all([(key, value)])
    }

    /// Stores several values, all or none.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_all(
        &self,
        values: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result {
        let changes: Vec<(String, String)> =
            values.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        host::state::set(&changes).map_err(Error::refused)
    }

    /// Deletes a key, if it exists.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn delete(&self, key: &str) -> Result {
        host::state::delete(key).map_err(Error::refused)
    }
}
