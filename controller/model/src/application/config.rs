//! The settings of applications: values by type, and hashes (`docs/hook-model.md` 6.2).

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal,
    budget::{BudgetKey, BudgetSettings},
    charm::CharmMeta,
    egress::{EgressGrants, WORKLOAD_EGRESS},
    hash,
    record::CharmRef,
    settings::{
        ModelSettings, OptionValue, OptionValues, SettingError, SettingKey, UnknownWorkloadCrash,
        WORKLOAD_CRASH, WorkloadCrash,
    },
    truth,
};

use crate::{entity::Application, model::config::change_key};

/// The most bytes of an application's settings. They are part of every view of it.
const MAX_CONFIG_BYTES: usize = 256 << 10;

/// Returns the settings after changes, given as text, and resets to defaults. One wrong value refuses all of them.
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

/// Applies changes of application-level keys, which are no options of the charm (M-9), and returns the other changes.
/// A charm's option hides the key of the same name.
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
            application.update_status_interval = interval(change.as_deref())?;
        } else {
            application.trust =
                change.as_deref().map(|text| read_truth(key, text)).transpose()?.unwrap_or(false);
            application.trust_hash = trust_hash(application.trust);
        }
    }
    application.budgets = change_budgets(meta, &application.budgets, &mut set, &mut reset)?;
    let egress = application.workload_egress.take();
    application.workload_egress = change_egress(meta, egress, &mut set, &mut reset)?;
    application.workload_crash = change_crash(meta, application.workload_crash, &mut set, &mut reset)?;
    Ok((set, reset))
}

fn read_truth(key: &str, text: &str) -> Result<bool, Refusal> {
    let wrong = || Refusal::bad_request(format!("{key} expected true or false, got {text:?}"));
    truth::parse(text).ok_or_else(wrong)
}

/// Returns a hash that changes when a hook would see other settings or another charm (M-8, U-35).
pub(crate) fn config_hash(meta: &CharmMeta, settings: &OptionValues, charm: CharmRef) -> String {
    let effective: BTreeMap<&str, Option<&OptionValue>> =
        meta.options.keys().map(|name| (name.as_str(), meta.effective(settings, name))).collect();
    hash::of_value(&(effective, charm))
}

/// Returns a hash that changes with the application-level keys (M-9).
pub(crate) fn trust_hash(trust: bool) -> String {
    hash::of_value(&BTreeMap::from([("trust", trust)]))
}

const TRUST: &str = "trust";
const UPDATE_STATUS: &str = "update-status-hook-interval";

fn set_budget(budgets: &mut BudgetSettings, key: BudgetKey, text: &str) -> Result<(), Refusal> {
    budgets.set(key, text).map_err(|error| Refusal::bad_request(error.to_string()))
}

/// Applies changes of budgets, and removes them from `set` and `reset`. A charm's option hides the budget of the same
/// name.
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

/// Applies a change of the destinations outside, and removes it from `set` and `reset`. A charm's option hides the key. An
/// application without destinations of its own has the model's.
pub(crate) fn change_egress(
    meta: &CharmMeta,
    present: Option<EgressGrants>,
    set: &mut BTreeMap<String, String>,
    reset: &mut Vec<String>,
) -> Result<Option<EgressGrants>, Refusal> {
    let text = match take(meta, WORKLOAD_EGRESS, set, reset)? {
        KeyChange::None => return Ok(present),
        KeyChange::Set(text) => Some(text),
        KeyChange::Reset => None,
    };
    let mut read = ModelSettings::default();
    change_key(&mut read, SettingKey::WorkloadEgress, text.as_deref())?;
    Ok(read.workload_egress)
}

/// Applies a change of the treatment of hooks that were cut short beside workloads, and removes it from `set` and
/// `reset`. A charm's option hides the key.
pub(crate) fn change_crash(
    meta: &CharmMeta,
    present: WorkloadCrash,
    set: &mut BTreeMap<String, String>,
    reset: &mut Vec<String>,
) -> Result<WorkloadCrash, Refusal> {
    match take(meta, WORKLOAD_CRASH, set, reset)? {
        KeyChange::None => Ok(present),
        KeyChange::Set(text) => {
            text.parse().map_err(|error: UnknownWorkloadCrash| Refusal::bad_request(error.to_string()))
        }
        KeyChange::Reset => Ok(WorkloadCrash::default()),
    }
}

/// A change of a key that is no option of the charm.
enum KeyChange {
    None,
    Set(String),
    Reset,
}

/// Takes the change of an application-level key out of `set` and `reset`. An option of the charm hides the key.
fn take(
    meta: &CharmMeta,
    key: &str,
    set: &mut BTreeMap<String, String>,
    reset: &mut Vec<String>,
) -> Result<KeyChange, Refusal> {
    if meta.options.contains_key(key) {
        return Ok(KeyChange::None);
    }
    let text = set.remove(key);
    let before = reset.len();
    reset.retain(|name| name != key);
    match (text, reset.len() < before) {
        (Some(_), true) => {
            Err(Refusal::bad_request(format!("cannot set and reset key {key:?} simultaneously")))
        }
        (Some(text), false) => Ok(KeyChange::Set(text)),
        (None, true) => Ok(KeyChange::Reset),
        (None, false) => Ok(KeyChange::None),
    }
}

/// Parses an interval in the same way as the model's setting.
fn interval(text: Option<&str>) -> Result<Option<u32>, Refusal> {
    let mut read = ModelSettings::default();
    change_key(&mut read, SettingKey::UpdateStatusHookInterval, text)?;
    Ok(read.update_status_hook_interval)
}
