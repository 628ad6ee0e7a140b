//! What charms store for their units (`docs/hook-model.md` 5.11).

use periapt_host_api::{
    ErrorCode, Refusal,
    state::{MAX_BYTES, MAX_KEY_BYTES, MAX_KEYS, MAX_VALUE_BYTES, StateKey},
};
use std::collections::BTreeMap;

use crate::{
    entity::{ModelKey, StateEntry, Unit},
    transaction::Transaction,
};

/// Applies a hook's writes: all, or a refusal that says which bound is in the way (O11).
pub(crate) fn apply(
    tx: &mut Transaction<'_>,
    unit: &Unit,
    changes: &BTreeMap<String, Option<String>>,
) -> Result<(), Refusal> {
    if changes.is_empty() {
        return Ok(());
    }
    for (key, value) in changes {
        let key = StateKey { unit: unit.name.clone(), key: key.clone() };
        match value {
            Some(value) => {
                check_entry(&key.key, value).map_err(|text| too_much(unit, text))?;
                tx.put(StateEntry { key, value: value.clone() });
            }
            None if tx.state.state_entry(&key).is_some() => tx.delete(ModelKey::State(key)),
            None => {}
        }
    }
    let (keys, bytes) = tx
        .state
        .state_of(&unit.name)
        .fold((0, 0), |(keys, bytes), entry| (keys + 1, bytes + entry.key.key.len() + entry.value.len()));
    if keys > MAX_KEYS {
        return Err(too_much(
            unit,
            format!("the state would have {keys} keys, at most {MAX_KEYS} are allowed"),
        ));
    }
    if bytes > MAX_BYTES {
        let text = format!("the state would take {bytes} bytes, at most {MAX_BYTES} are allowed");
        return Err(too_much(unit, text));
    }
    Ok(())
}

fn check_entry(key: &str, value: &str) -> Result<(), String> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(format!("a key of the state must take 1 to {MAX_KEY_BYTES} bytes, not {}", key.len()));
    }
    if value.len() > MAX_VALUE_BYTES {
        let bytes = value.len();
        return Err(format!(
            "the state's value of {key:?} takes {bytes} bytes, at most {MAX_VALUE_BYTES} are allowed"
        ));
    }
    Ok(())
}

fn too_much(unit: &Unit, text: String) -> Refusal {
    Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("unit {}", unit.name))
}
