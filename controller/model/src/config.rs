//! Settings: reading values by their types, hashes, model configuration (`hook-model.md` 6.2, 7.9).

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal,
    budget::{BudgetKey, BudgetSettings},
    charm::{CharmMeta, OptionType},
    hash,
    record::CharmRef,
    settings::{self, ModelConfig, OptionValue, OptionValues, SettingError},
};

use crate::entity::Application;

/// The most that an application's settings may take: they are part of every view of it.
const MAX_CONFIG_BYTES: usize = 256 << 10;

/// Settings after some were set, given as text, and others went back to their defaults: all or none.
pub(crate) fn change(
    meta: &CharmMeta,
    present: &OptionValues,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<OptionValues, Refusal> {
    let wrong = |error: SettingError| Refusal::bad_request(error.to_string());
    let mut next = present.clone();
    for name in reset {
        meta.option(name).map_err(wrong)?;
        if set.contains_key(name) {
            return Err(Refusal::bad_request(format!("cannot set and reset key {name:?} simultaneously")));
        }
        next.remove(name);
    }
    for (name, text) in set {
        match meta.setting(name, text).map_err(wrong)? {
            Some(value) => next.insert(name.clone(), value),
            None => next.remove(name),
        };
    }
    let bytes: usize = next.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
    if bytes > MAX_CONFIG_BYTES {
        return Err(Refusal::new(
            ErrorCode::QuotaExceeded,
            format!("the settings would take {bytes} bytes, at most {MAX_CONFIG_BYTES} are allowed"),
        ));
    }
    Ok(next)
}

/// Application-level keys, which are no options of the charm (M-9): changes them, and answers what is left for the
/// charm's own options. An option of the same name hides the key.
pub(crate) fn change_application(
    application: &mut Application,
    meta: &CharmMeta,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<(BTreeMap<String, String>, Vec<String>), Refusal> {
    let (mut set, mut reset) = (set.clone(), reset.to_vec());
    let key = |key: &'static str| Some(key).filter(|key| !meta.options.contains_key(*key));
    for key in [key(UPDATE_STATUS), key(TRUST)].into_iter().flatten() {
        let (value, back) = (set.remove(key), reset.iter().any(|name| name == key));
        reset.retain(|name| name != key);
        let change = match (value, back) {
            (Some(_), true) => {
                return Err(Refusal::bad_request(format!("cannot set and reset key {key:?} simultaneously")));
            }
            (None, false) => continue,
            (value, _) => value,
        };
        if key == UPDATE_STATUS {
            application.update_status_interval = change.as_deref().map(interval).transpose()?;
        } else {
            application.trust = change.as_deref().map(|text| truth(key, text)).transpose()?.unwrap_or(false);
            application.trust_hash = trust_hash(application.trust);
        }
    }
    application.budgets = change_budgets(meta, &application.budgets, &mut set, &mut reset)?;
    Ok((set, reset))
}

fn truth(key: &str, text: &str) -> Result<bool, Refusal> {
    match OptionType::Boolean.parse(text) {
        Some(OptionValue::Boolean(truth)) => Ok(truth),
        _ => Err(Refusal::bad_request(format!("{key} expected true or false, got {text:?}"))),
    }
}

/// Differs when a hook would see other settings, or another charm (M-8, U-35).
pub(crate) fn config_hash(meta: &CharmMeta, settings: &OptionValues, charm: CharmRef) -> String {
    let effective: BTreeMap<&str, Option<&OptionValue>> =
        meta.options.keys().map(|name| (name.as_str(), meta.effective(settings, name))).collect();
    hash::of_value(&(effective, charm))
}

/// Differs when an application-level key does (M-9).
pub(crate) fn trust_hash(trust: bool) -> String {
    hash::of_value(&BTreeMap::from([("trust", trust)]))
}

const TRUST: &str = "trust";
const UPDATE_STATUS: &str = "update-status-hook-interval";
const RETRY_HOOKS: &str = "automatically-retry-hooks";
const RESULTS_AGE: &str = "max-action-results-age";
const RESULTS_SIZE: &str = "max-action-results-size";
const HISTORY_AGE: &str = "max-status-history-age";
const HISTORY_SIZE: &str = "max-status-history-size";
pub(crate) const STORAGE_SIZE: &str = "storage-default-max-size";

/// Model configuration after some keys were set, given as text, and others went back to their defaults.
pub(crate) fn change_model(
    present: &ModelConfig,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<ModelConfig, Refusal> {
    let (mut next, defaults) = (present.clone(), ModelConfig::default());
    for key in reset {
        if set.contains_key(key) {
            return Err(Refusal::bad_request(format!("cannot set and reset key {key:?} simultaneously")));
        }
        match key.as_str() {
            UPDATE_STATUS => next.update_status_hook_interval = defaults.update_status_hook_interval,
            RETRY_HOOKS => next.automatically_retry_hooks = defaults.automatically_retry_hooks,
            RESULTS_AGE => next.max_action_results_age = defaults.max_action_results_age,
            RESULTS_SIZE => next.max_action_results_size = defaults.max_action_results_size,
            HISTORY_AGE => next.max_status_history_age = defaults.max_status_history_age,
            HISTORY_SIZE => next.max_status_history_size = defaults.max_status_history_size,
            STORAGE_SIZE => next.storage_default_max_size = defaults.storage_default_max_size,
            key => next.budgets.reset(model_budget(key)?),
        }
    }
    for (key, text) in set {
        match key.as_str() {
            UPDATE_STATUS => next.update_status_hook_interval = interval(text)?,
            RESULTS_AGE => next.max_action_results_age = age(key, text)?,
            RESULTS_SIZE => next.max_action_results_size = mebibytes(key, text)?,
            RETRY_HOOKS => next.automatically_retry_hooks = truth(key, text)?,
            HISTORY_AGE => next.max_status_history_age = age(key, text)?,
            HISTORY_SIZE => next.max_status_history_size = mebibytes(key, text)?,
            STORAGE_SIZE => next.storage_default_max_size = mebibytes(key, text)?,
            key => set_budget(&mut next.budgets, model_budget(key)?, text)?,
        }
    }
    Ok(next)
}

fn model_budget(key: &str) -> Result<BudgetKey, Refusal> {
    key.parse().map_err(|_| {
        let mut known = vec![
            RETRY_HOOKS,
            RESULTS_AGE,
            RESULTS_SIZE,
            HISTORY_AGE,
            HISTORY_SIZE,
            STORAGE_SIZE,
            UPDATE_STATUS,
        ];
        known.extend(BudgetKey::ALL.map(BudgetKey::as_str));
        let known = known.join(", ");
        Refusal::bad_request(format!("unknown model configuration key {key:?}; known are {known}"))
    })
}

fn set_budget(budgets: &mut BudgetSettings, key: BudgetKey, text: &str) -> Result<(), Refusal> {
    budgets.set(key, text).map_err(|error| Refusal::bad_request(error.to_string()))
}

/// Takes out of changes to an application's settings those that are about its budgets, and makes them. A charm's own
/// option of such a name is the charm's.
pub(crate) fn change_budgets(
    meta: &CharmMeta,
    present: &BudgetSettings,
    set: &mut BTreeMap<String, String>,
    reset: &mut Vec<String>,
) -> Result<BudgetSettings, Refusal> {
    let mut next = present.clone();
    for key in BudgetKey::ALL.into_iter().filter(|key| !meta.options.contains_key(key.as_str())) {
        let text = set.remove(key.as_str());
        let before = reset.len();
        reset.retain(|name| name != key.as_str());
        match (text, reset.len() < before) {
            (Some(_), true) => {
                let name = key.as_str();
                return Err(Refusal::bad_request(format!(
                    "cannot set and reset key {name:?} simultaneously"
                )));
            }
            (Some(text), false) => set_budget(&mut next, key, &text)?,
            (None, true) => next.reset(key),
            (None, false) => {}
        }
    }
    Ok(next)
}

fn interval(text: &str) -> Result<u32, Refusal> {
    match settings::seconds(text) {
        Some(seconds) if seconds == 0 || (60..=3600).contains(&seconds) => Ok(seconds),
        _ => Err(Refusal::bad_request(format!(
            "{UPDATE_STATUS} expected 0 (off) or a duration from 1m to 60m, got {text:?}"
        ))),
    }
}

/// At least an hour: what is shorter would prune what people still look at.
fn age(key: &str, text: &str) -> Result<u32, Refusal> {
    settings::seconds(text).filter(|seconds| *seconds >= 3600).ok_or_else(|| {
        Refusal::bad_request(format!("{key} expected a duration of at least 1h, such as 336h, got {text:?}"))
    })
}

/// `500M`, `5G`, `1T`.
fn mebibytes(key: &str, text: &str) -> Result<u32, Refusal> {
    let size = || {
        let unit = text.chars().last()?;
        let factor: u32 = match unit {
            'M' => 1,
            'G' => 1 << 10,
            'T' => 1 << 20,
            _ => return None,
        };
        text.strip_suffix(unit)?.parse::<u32>().ok()?.checked_mul(factor).filter(|size| *size > 0)
    };
    size().ok_or_else(|| {
        Refusal::bad_request(format!("{key} expected a size in M, G or T, such as 5G, got {text:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_histories_has_a_unit() {
        for (text, expected) in [("1M", 1), ("5G", 5120), ("1T", 1 << 20)] {
            assert_eq!(mebibytes(HISTORY_SIZE, text).unwrap(), expected, "{text}");
        }
        for text in ["", "5", "0M", "-1G", "5K", "G", "9999999T", "5\u{fc}"] {
            assert!(mebibytes(HISTORY_SIZE, text).is_err(), "{text}");
        }
        assert_eq!(age(HISTORY_AGE, "336h").unwrap(), 1_209_600);
        assert!(age(HISTORY_AGE, "59m").is_err() && age(HISTORY_AGE, "0").is_err());
    }

    #[test]
    fn an_interval_is_off_or_between_a_minute_and_an_hour() {
        for (text, expected) in [("0", 0), ("0s", 0), ("5m", 300), ("1m30s", 90), ("1h", 3600), ("60m", 3600)]
        {
            assert_eq!(interval(text).unwrap(), expected, "{text}");
        }
        for text in ["", "5", "m", "59s", "61m", "-5m", "5d", "99999999999h", "4294967295h"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
