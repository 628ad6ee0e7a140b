//! What a charm keeps for its unit.

use crate::{Error, Result, host};
use std::collections::BTreeMap;

/// What this unit keeps from one hook to the next: texts by key, written when the hook succeeds and gone with the
/// unit. Nobody else sees it. A unit has at most 4,096 keys of up to 256 bytes, values of up to 64 KiB, and 2 MiB in
/// all; a hook that stores more fails when it commits.
#[derive(Debug)]
pub struct State(());

impl State {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// What is stored under a key, this hook's writes included.
    pub fn get(&self, key: &str) -> Option<String> {
        host::state::get(key)
    }

    /// All that is stored.
    pub fn all(&self) -> BTreeMap<String, String> {
        host::state::get_all().into_iter().collect()
    }

    /// Stores a value; an empty one is a value.
    ///
    /// # Errors
    ///
    /// When the hook asks for more than one commit takes.
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

    /// Deletes a key, if it is there.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn delete(&self, key: &str) -> Result {
        host::state::delete(key).map_err(Error::refused)
    }
}
