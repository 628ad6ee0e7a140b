//! What a command's writes take in stored form. Only steps of the worker ask: each write is weighed once, when
//! somebody does.

use std::{cell::RefCell, collections::BTreeMap};

use periapt_host_api::size;

use crate::{entity::EntityKey, root::changes::Changes};

/// What a key and a value take beside their JSON: `model/UUID/` and the byte that names the form.
const FRAME_BYTES: usize = 50;

/// The weights of writes so far.
#[derive(Debug, Default)]
pub(super) struct Weights(RefCell<BTreeMap<EntityKey, usize>>);

impl Weights {
    /// A key is written again.
    pub(super) fn forget(&mut self, key: &EntityKey) {
        self.0.get_mut().remove(key);
    }

    /// Bytes of all keys and values.
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
