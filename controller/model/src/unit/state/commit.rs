//! The changes of stored state by hooks (`docs/hook-model.md` 5.11).

use periapt_host_api::{
    ErrorCode, Refusal,
    state::{MAX_BYTES, MAX_KEY_BYTES, MAX_KEYS, MAX_VALUE_BYTES, StateKey},
};
use std::collections::BTreeMap;

use crate::{
    entity::{ModelKey, StateEntry, Unit},
    transaction::Transaction,
};

/// The bound of a unit's state that a hook's writes exceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum StateError {
    #[error("a key of the state must take 1 to {MAX_KEY_BYTES} bytes, not {0}")]
    KeyLength(usize),
    #[error("the state's value of {key:?} takes {bytes} bytes, at most {MAX_VALUE_BYTES} are allowed")]
    LongValue { key: String, bytes: usize },
    #[error("the state would have {0} keys, at most {MAX_KEYS} are allowed")]
    ManyKeys(usize),
    #[error("the state would take {0} bytes, at most {MAX_BYTES} are allowed")]
    ManyBytes(usize),
}

/// Applies a hook's writes: all, or a refusal that names the exceeded bound (O11).
pub(crate) fn apply(
    tx: &mut Transaction<'_>,
    unit: &Unit,
    changes: &BTreeMap<String, Option<String>>,
) -> Result<(), Refusal> {
    if changes.is_empty() {
        return Ok(());
    }
    let too_much = |error: StateError| {
        Refusal::new(ErrorCode::QuotaExceeded, error.to_string()).about(format!("unit {}", unit.name))
    };
    for (key, value) in changes {
        let key = StateKey { unit: unit.name.clone(), key: key.clone() };
        match value {
            Some(value) => {
                check_entry(&key.key, value).map_err(too_much)?;
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
        return Err(too_much(StateError::ManyKeys(keys)));
    }
    if bytes > MAX_BYTES {
        return Err(too_much(StateError::ManyBytes(bytes)));
    }
    Ok(())
}

fn check_entry(key: &str, value: &str) -> Result<(), StateError> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(StateError::KeyLength(key.len()));
    }
    match value.len() {
        bytes if bytes > MAX_VALUE_BYTES => Err(StateError::LongValue { key: key.to_owned(), bytes }),
        _ => Ok(()),
    }
}
