//! The commands that add, attach, detach and remove storage.

use std::sync::Arc;

use periapt_host_api::{
    AgentName, ErrorCode, Refusal, StorageId, UnitName,
    command::{Answer, Force},
    status::Life,
    storage::{StorageDirective, StorageDirectives, StorageEnd},
};

use super::{
    life::{self, StorageRequest},
    takeover,
};
use crate::{
    entity::{Unit, Work},
    transaction::Transaction,
};

pub(crate) fn add(
    tx: &mut Transaction<'_>,
    name: &UnitName,
    directives: &StorageDirectives,
) -> Result<Answer, Refusal> {
    let unit = alive(tx, name, "cannot add storage")?;
    Ok(Answer::Storage { storage: add_to(tx, &unit.name, directives)? })
}

/// Adds instances to an alive unit, one for each name without a count.
pub(crate) fn add_to(
    tx: &mut Transaction<'_>,
    unit: &UnitName,
    directives: &StorageDirectives,
) -> Result<Vec<StorageId>, Refusal> {
    tx.require_alive()?;
    let application = tx.application(unit.application())?;
    let meta = tx.charm_meta(&application)?;
    let mut counted = directives.clone();
    for directive in counted.values_mut() {
        directive.count.get_or_insert(1);
    }
    life::check(meta, &counted, |name| life::count_of(&tx.state, unit, name))?;
    let more = counted.values().filter_map(|directive| directive.count).fold(0_u32, u32::saturating_add);
    life::check_total(life::total_of(&tx.state, unit).saturating_add(more))?;
    for (name, directive) in &mut counted {
        // The directives given at deploy also hold for storage that is added later.
        let before = application.storage.get(name).cloned().unwrap_or_default();
        *directive = StorageDirective {
            pool: directive.pool.take().or(before.pool),
            size: directive.size.or(before.size),
            count: directive.count,
        };
    }
    let own = life::unsized_by(meta, &counted).filter(|(name, _)| counted.contains_key(*name));
    life::check_sizes(tx.state.config(), meta, own)?;
    let mut added = Vec::new();
    for (name, directive) in counted {
        if let Some(declared) = meta.storage.get(&name) {
            added.extend(life::make(tx, unit, &StorageRequest::of(&name, declared, &directive))?);
        }
    }
    Ok(added)
}

pub(crate) fn attach(tx: &mut Transaction<'_>, name: &UnitName, id: &StorageId) -> Result<Answer, Refusal> {
    let unit = alive(tx, name, &format!("cannot attach storage {id}"))?;
    let found = life::find(tx, id)?;
    let application = tx.application(name.application())?;
    let meta = tx.charm_meta(&application)?;
    let count = life::count_of(&tx.state, name, id.name()).saturating_add(1);
    let declared = takeover::check_free(&found, meta, count)?;
    let (here, there) = (tx.state.agent_of(&unit), found.agent.as_ref());
    if here != there {
        let place = |agent: Option<&AgentName>| {
            agent.map_or_else(|| "no agent".to_owned(), |agent| format!("agent {agent}"))
        };
        let text = format!("it lies on {}, and unit {name} is on {}", place(there), place(here));
        return Err(takeover::cannot(id, ErrorCode::Conflict, text));
    }
    life::check_total(life::total_of(&tx.state, name).saturating_add(1))?;
    takeover::attach(tx, &found, declared, name);
    Ok(Answer::Done)
}

pub(crate) fn detach(
    tx: &mut Transaction<'_>,
    id: &StorageId,
    force: Option<Force>,
) -> Result<Answer, Refusal> {
    let found = life::find(tx, id)?;
    let Some(holder) = found.unit() else {
        let text = format!("cannot detach storage {id}: no unit has it");
        return Err(Refusal::conflict(text).about(format!("storage {id}")));
    };
    let application = tx.application(holder.application())?;
    let least = tx.charm_meta(&application)?.storage.get(id.name()).map_or(0, |declared| declared.count.min);
    let left = life::count_of(&tx.state, holder, id.name()).saturating_sub(1);
    let unit_stays = tx.state.unit(holder).is_some_and(|unit| unit.life == Life::Alive);
    if left < least && unit_stays && force.is_none() {
        let text = format!(
            "cannot detach storage {id}: the charm of unit {holder} requires {least} of it; remove the unit, or use \
             force"
        );
        return Err(Refusal::conflict(text).about(format!("storage {id}")));
    }
    life::begin_detach(tx, &found);
    schedule(tx, id, force, Some(found.detachments));
    Ok(answer(tx, id))
}

pub(crate) fn remove(
    tx: &mut Transaction<'_>,
    id: &StorageId,
    end: StorageEnd,
    force: Option<Force>,
) -> Result<Answer, Refusal> {
    let found = life::find(tx, id)?;
    if let Some(holder) = found.unit().filter(|_| force.is_none()) {
        let text = format!("cannot remove storage {id}: unit {holder} has it; detach it first, or use force");
        return Err(Refusal::conflict(text).about(format!("storage {id}")));
    }
    life::remove(tx, &found, end);
    schedule(tx, id, force, None);
    Ok(answer(tx, id))
}

/// Adds the work item that ends the wait after `max-wait`, if the operator used force.
fn schedule(tx: &mut Transaction<'_>, id: &StorageId, force: Option<Force>, detachment: Option<u32>) {
    if let Some(force) = force.filter(|_| tx.state.storage(id).is_some()) {
        let due = tx.force_due(force);
        tx.add_work(Work::ForceStorage { storage: id.clone(), detachment }, Some(due));
    }
}

fn answer(tx: &Transaction<'_>, id: &StorageId) -> Answer {
    match tx.state.storage(id) {
        None => Answer::Removal { gone: true, waits_for: Vec::new() },
        Some(found) => Answer::Removal { gone: false, waits_for: life::waits_for(found) },
    }
}

/// Refuses a unit that is not alive (L-6).
fn alive(tx: &Transaction<'_>, name: &UnitName, what: &str) -> Result<Arc<Unit>, Refusal> {
    let unit = tx.unit(name)?;
    match unit.life {
        Life::Alive => Ok(unit),
        Life::Dying | Life::Dead => {
            Err(Refusal::not_alive(format!("{what}: unit {name} is not alive")).about(format!("unit {name}")))
        }
    }
}
