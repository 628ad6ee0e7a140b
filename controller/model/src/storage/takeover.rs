//! A new unit that takes over detached storage (`--attach-storage`): it is placed on the agent that has the storage.

use std::{collections::BTreeSet, sync::Arc};

use periapt_host_api::{
    AgentName, ErrorCode, Refusal, StorageId, StorageName, UnitName,
    charm::{CharmMeta, StorageMeta},
    command::Placement,
    status::Life,
    storage::StorageDirectives,
};

use super::life::{self, StorageRequest};
use crate::{entity::Storage, transaction::Transaction};

/// The storage that a new unit takes over, after the check.
#[derive(Debug, Default)]
pub(crate) struct TakenOver {
    agent: Option<AgentName>,
    storages: Vec<Arc<Storage>>,
}

/// The placement of new units, and the storage that the only one of them takes over.
#[derive(Debug, Default)]
pub(crate) struct NewUnitPlacement {
    pub(crate) placement: Vec<Placement>,
    storages: Vec<Arc<Storage>>,
}

impl TakenOver {
    /// Refuses storage that a new unit of the charm cannot attach.
    pub(crate) fn check(
        tx: &Transaction<'_>,
        meta: &CharmMeta,
        directives: &StorageDirectives,
        ids: &[StorageId],
    ) -> Result<Self, Refusal> {
        let mut taken = Self::default();
        let ids: BTreeSet<&StorageId> = ids.iter().collect();
        let wanted = life::of_new_unit(meta, directives);
        for id in ids {
            let found = life::find(tx, id)?;
            let same = |taken: &&Arc<Storage>| taken.id.name() == id.name();
            let attached = taken.storages.iter().filter(same).count().saturating_add(1);
            check_free(&found, meta, u32::try_from(attached).unwrap_or(u32::MAX))?;
            match (&taken.agent, &found.agent) {
                (Some(one), Some(other)) if one != other => {
                    return Err(cannot(
                        id,
                        ErrorCode::Conflict,
                        format!("it lies on agent {other}, and other storage of the unit on agent {one}"),
                    ));
                }
                (_, agent) => taken.agent.clone_from(agent),
            }
            taken.storages.push(found);
        }
        let each = wanted.iter().map(|wanted| taken.left_of(wanted)).fold(0, u32::saturating_add);
        let taken_over = u32::try_from(taken.storages.len()).unwrap_or(u32::MAX);
        life::check_total(each.saturating_add(taken_over))?;
        Ok(taken)
    }

    /// Returns the number of instances that are still to be created.
    fn left_of(&self, wanted: &StorageRequest<'_>) -> u32 {
        left_of(&self.storages, wanted)
    }

    /// Places the unit on the agent that has its storage.
    pub(crate) fn place(
        self,
        tx: &Transaction<'_>,
        units: u32,
        placement: &[Placement],
    ) -> Result<NewUnitPlacement, Refusal> {
        let Some(agent) = self.agent else {
            return Ok(NewUnitPlacement { placement: placement.to_vec(), storages: self.storages });
        };
        if units != 1 {
            return Err(Refusal::bad_request(format!(
                "storage is attached to one unit, and {units} units are asked for"
            )));
        }
        let elsewhere = |other: &AgentName| {
            Refusal::conflict(format!("its storage lies on agent {agent}, and it is placed on agent {other}"))
        };
        let placement = match placement.first() {
            None => vec![Placement::Agent(agent)],
            Some(Placement::Agent(other)) if *other != agent => return Err(elsewhere(other)),
            Some(Placement::Machine(id)) => match tx.state.machine(id) {
                Some(machine) if machine.agent != agent => return Err(elsewhere(&machine.agent)),
                _ => placement.to_vec(),
            },
            Some(Placement::Agent(_)) => placement.to_vec(),
        };
        Ok(NewUnitPlacement { placement, storages: self.storages })
    }
}

impl NewUnitPlacement {
    /// Returns the placement of new units that take over no storage.
    pub(crate) fn at(placement: &[Placement]) -> Self {
        Self { placement: placement.to_vec(), storages: Vec::new() }
    }

    /// Returns the number of instances that are still to be created.
    pub(crate) fn left_of(&self, wanted: &StorageRequest<'_>) -> u32 {
        left_of(&self.storages, wanted)
    }

    /// Attaches the storage to the unit.
    pub(crate) fn attach(&self, tx: &mut Transaction<'_>, meta: &CharmMeta, unit: &UnitName) {
        for found in &self.storages {
            if let Some(declared) = meta.storage.get(found.id.name()) {
                attach(tx, found, declared, unit);
            }
        }
    }
}

fn left_of(taken: &[Arc<Storage>], wanted: &StorageRequest<'_>) -> u32 {
    let taken = taken.iter().filter(|storage| storage.id.name() == wanted.name()).count();
    wanted.count.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX))
}

/// Attaches unused storage to a unit.
pub(crate) fn attach(tx: &mut Transaction<'_>, found: &Storage, declared: &StorageMeta, unit: &UnitName) {
    let attachment = Some(life::attachment(unit, &found.id, declared));
    let since = tx.now();
    tx.put(Storage { attachment, since, ..found.clone() });
}

/// Refuses storage that is attached, is being removed, or does not fit the charm's declaration. `count` is the unit's
/// number of instances with this one.
pub(crate) fn check_free<'a>(
    found: &Storage,
    meta: &'a CharmMeta,
    count: u32,
) -> Result<&'a StorageMeta, Refusal> {
    let id = &found.id;
    if let Some(holder) = found.unit() {
        return Err(cannot(id, ErrorCode::Conflict, format!("unit {holder} has it")));
    }
    if found.life() != Life::Alive {
        return Err(cannot(id, ErrorCode::NotAlive, "it is being removed".to_owned()));
    }
    let name: &StorageName = id.name();
    let Some(declared) = meta.storage.get(name) else {
        let text = format!("charm {:?} has no store called {:?}", meta.name, name.as_str());
        return Err(cannot(id, ErrorCode::NotFound, text));
    };
    if let Some(most) = declared.count.max.filter(|most| count > *most) {
        let text = format!("at most {most} instances supported, {count} specified");
        return Err(cannot(id, ErrorCode::QuotaExceeded, text));
    }
    if found.size < declared.minimum_size {
        return Err(cannot(id, ErrorCode::BadRequest, "it is smaller than the charm's minimum".to_owned()));
    }
    Ok(declared)
}

/// Returns the refusal to attach storage.
pub(crate) fn cannot(id: &StorageId, code: ErrorCode, reason: String) -> Refusal {
    Refusal::new(code, format!("cannot attach storage {id}: {reason}")).about(format!("storage {id}"))
}
