//! The sizes of a transaction's writes in stored form. Only steps of workers ask for them, so each write is measured
//! once, on the first request.

use std::{cell::RefCell, collections::BTreeMap};

use periapt_host_api::size;

use crate::{entity::EntityKey, root::changes::Changes};

/// The bytes of a key and a value besides their JSON: `model/UUID/` and the byte that names the form.
const FRAME_BYTES: usize = 50;

/// The sizes of the writes so far, in bytes.
#[derive(Debug, Default)]
pub(super) struct Weights(RefCell<BTreeMap<EntityKey, usize>>);

impl Weights {
    /// Forgets the size of a key that is written again.
    pub(super) fn forget(&mut self, key: &EntityKey) {
        self.0.get_mut().remove(key);
    }

    /// Returns the bytes of all keys and values.
    pub(super) fn of(&self, changes: &Changes) -> usize {
        let mut weights = self.0.borrow_mut();
        if weights.len() < changes.puts.len() {
            for (key, entity) in &changes.puts {
                if !weights.contains_key(key) {
                    let value = entity.as_ref().map_or(0, size::of_json);
                    let bytes = size::of_json(key).saturating_add(value).saturating_add(FRAME_BYTES);
                    weights.insert(key.clone(), bytes);
                }
            }
        }
        weights.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}
