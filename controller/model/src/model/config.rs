//! A model's configuration (`docs/hook-model.md` 7.9).

use std::collections::BTreeMap;

use periapt_host_api::{
    Refusal,
    settings::{ModelSettings, SettingKey},
};

/// Returns the settings after changes, given as text, and resets. One wrong value refuses all of them.
pub(crate) fn change_model(
    present: &ModelSettings,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<ModelSettings, Refusal> {
    let key =
        |name: &String| name.parse::<SettingKey>().map_err(|error| Refusal::bad_request(error.to_string()));
    let mut next = present.clone();
    for name in reset {
        if set.contains_key(name) {
            return Err(Refusal::bad_request(format!("cannot set and reset key {name:?} simultaneously")));
        }
        change_key(&mut next, key(name)?, None)?;
    }
    for (name, text) in set {
        change_key(&mut next, key(name)?, Some(text))?;
    }
    Ok(next)
}

/// Sets one key, given as text, or resets it.
pub(crate) fn change_key(
    settings: &mut ModelSettings,
    key: SettingKey,
    text: Option<&str>,
) -> Result<(), Refusal> {
    settings.set(key, text).map_err(|error| Refusal::bad_request(error.to_string()))
}
