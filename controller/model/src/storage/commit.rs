//! Storage in commits, and the reports of agents about it.

use periapt_host_api::{
    AgentName, Refusal, StorageId,
    agent::{RunnerAnswer, StorageReport},
    commit::UnitCommit,
    status::Life,
    storage::{StorageDirective, StorageDirectives, mebibytes},
};

use super::{command::add_to, life};
use crate::{
    access::check::denied,
    entity::{ModelKey, Storage, Unit},
    transaction::Transaction,
};

/// The most bytes of the reason for an agent's failure.
const MAX_REASON: usize = 1_024;

/// Applies a commit to storage: the unit's detachments first, then the instances that its hook adds (5.8).
pub(crate) fn apply(tx: &mut Transaction<'_>, unit: &Unit, commit: &UnitCommit) -> Result<(), Refusal> {
    for id in &commit.transitions.detach_storage {
        let own = tx.state.storage(id).filter(|storage| storage.unit() == Some(&unit.name)).cloned();
        if let Some(storage) = own {
            life::detached(tx, &storage);
        }
    }
    let added = &commit.effects.add_storage;
    if added.is_empty() {
        return Ok(());
    }
    if unit.life != Life::Alive {
        // L-6
        let text = format!("cannot add storage: unit {} is not alive", unit.name);
        return Err(Refusal::not_alive(text).about(format!("unit {}", unit.name)));
    }
    let directives: StorageDirectives = added
        .iter()
        .map(|(name, count)| (name.clone(), StorageDirective { count: Some(*count), ..Default::default() }))
        .collect();
    add_to(tx, &unit.name, &directives)
        .map(|_| ())
        .map_err(|refusal| Refusal::new(refusal.code, format!("cannot add storage: {}", refusal.message)))
}

/// Returns the reason why an agent has no room for one more instance: all storage on its disk, of all models and with
/// instances that it has yet to delete, would exceed its limit. The agent asks again.
fn no_room(tx: &Transaction<'_>, agent: &AgentName, wanted: &Storage) -> Option<String> {
    let most = tx.root.agent(agent)?.host.storage_limit?;
    // An instance that is provisioned stays, even if the agent's limit is lowered.
    if wanted.agent.is_some() {
        return None;
    }
    let others = tx.root.models_at(agent).filter(|(uuid, _)| **uuid != tx.uuid).map(|(_, state)| &**state);
    let sizes = others.chain([&tx.state]).flat_map(|state| state.storages_at(agent)).map(|it| it.size);
    let promised = sizes.fold(0, u64::saturating_add);
    (promised.saturating_add(wanted.size) > most).then(|| {
        let [size, promised, most] = [wanted.size, promised, most].map(mebibytes);
        format!(
            "not enough space for {size}: {promised} of the {most} that storage on agent {agent} may take are promised; remove \
             storage there, or run the agent with a larger --storage-limit"
        )
    })
}

/// Applies an agent's report about storage on its disk. About other agents' storage the caller learns nothing.
pub(crate) fn report(
    tx: &mut Transaction<'_>,
    agent: &AgentName,
    id: &StorageId,
    report: &StorageReport,
) -> Result<RunnerAnswer, Refusal> {
    let found = tx.state.storage(id).cloned().ok_or_else(denied)?;
    let host = match &found.agent {
        Some(place) => Some(place),
        None => found.unit().and_then(|unit| tx.state.unit(unit)).and_then(|unit| tx.state.agent_of(unit)),
    };
    if host != Some(agent) {
        return Err(denied());
    }
    let mut storage = Storage::clone(&found);
    match report {
        StorageReport::Provisioned => {
            storage.failure = None;
            storage.no_room = no_room(tx, agent, &found);
            storage.agent = storage.no_room.is_none().then(|| agent.clone());
        }
        StorageReport::Failed { message } => {
            let end = message.floor_char_boundary(MAX_REASON);
            storage.failure = Some(message.get(..end).unwrap_or_default().to_owned());
        }
        StorageReport::Deleted if storage.is_to_be_deleted() => {
            tx.delete(ModelKey::Storage(id.clone()));
            return Ok(RunnerAnswer::Done);
        }
        StorageReport::Deleted => {
            return Err(Refusal::conflict(format!("storage {id} is not to be deleted")));
        }
    }
    if storage != *found {
        storage.since = tx.now();
        tx.put(storage);
    }
    Ok(RunnerAnswer::Done)
}
