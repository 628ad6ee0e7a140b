//! Writes to bags and leader settings (`docs/hook-model.md` 2.7).

use periapt_host_api::{
    ErrorCode, Refusal,
    commit::HookEffects,
    record::UnitRecord,
    relation::{BagKey, BagOwner, MAX_BAG_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, Settings},
    status::Life,
};

use crate::{
    access::check::denied,
    entity::{Application, Bag, Unit},
    transaction::Transaction,
};

/// Applies a hook's writes. `before` is the unit's record from before the hook.
pub(crate) fn apply(
    tx: &mut Transaction<'_>,
    unit: &Unit,
    before: &UnitRecord,
    effects: &HookEffects,
) -> Result<(), Refusal> {
    for (relation, changes) in &effects.bags {
        if tx.state.membership(relation, &unit.name).is_none() {
            let dead = tx.state.relation(relation).filter(|relation| relation.life == Life::Dead);
            let own = dead.is_some_and(|dead| dead.end_of(unit.name.application()).is_some());
            if own && before.relations.contains_key(relation) {
                // The relation was removed by force, and the unit still runs its last hooks. Nothing reads this
                // write.
                continue;
            }
            // The refusal is the same for another unit's relation and for one that does not exist.
            return Err(denied());
        }
        write(tx, BagKey { relation: *relation, owner: BagOwner::Unit(unit.name.clone()) }, &changes.unit)?;
        let owner = BagOwner::Application(unit.name.application().clone());
        write(tx, BagKey { relation: *relation, owner }, &changes.application)?;
    }
    write_leader_settings(tx, unit, &effects.leader_settings)
}

fn write(tx: &mut Transaction<'_>, key: BagKey, changes: &Settings) -> Result<(), Refusal> {
    if changes.is_empty() {
        return Ok(());
    }
    let present = tx.state.bag(&key).map(|bag| bag.settings.clone()).unwrap_or_default();
    let about = format!("relation {}", key.relation);
    let next = merged(present, changes).map_err(|refusal| refusal.about(about))?;
    put_settings(tx, key, next);
    Ok(())
}

/// Writes a bag's settings. Equal settings make no new version.
pub(crate) fn put_settings(tx: &mut Transaction<'_>, key: BagKey, settings: Settings) {
    let (same, version, container) = match tx.state.bag(&key) {
        Some(bag) => (bag.settings == settings, bag.version, bag.container.clone()),
        None => (settings.is_empty(), 0, None),
    };
    if !same {
        tx.put(Bag { key, settings, version: version.saturating_add(1), container });
    }
}

fn write_leader_settings(tx: &mut Transaction<'_>, unit: &Unit, changes: &Settings) -> Result<(), Refusal> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut application = Application::clone(&*tx.application(unit.name.application())?);
    let next = merged(application.leader_settings.clone(), changes)
        .map_err(|refusal| refusal.about(format!("application {}", application.name)))?;
    if next != application.leader_settings {
        application.leader_settings = next;
        application.leader_settings_version = application.leader_settings_version.saturating_add(1);
        tx.put(application);
    }
    Ok(())
}

/// Returns the settings after the changes. An empty value deletes its key.
fn merged(mut settings: Settings, changes: &Settings) -> Result<Settings, Refusal> {
    let quota = |text: String| Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    for (key, value) in changes {
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return quota(format!("a key must take 1 to {MAX_KEY_BYTES} bytes, not {}", key.len()));
        }
        if value.len() > MAX_VALUE_BYTES {
            let bytes = value.len();
            return quota(format!(
                "the value of {key:?} takes {bytes} bytes, at most {MAX_VALUE_BYTES} are allowed"
            ));
        }
        match value.is_empty() {
            true => settings.remove(key),
            false => settings.insert(key.clone(), value.clone()),
        };
    }
    let bytes: usize = settings.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_BAG_BYTES {
        return quota(format!("the settings would take {bytes} bytes, at most {MAX_BAG_BYTES} are allowed"));
    }
    Ok(settings)
}
