//! The status of storage, in Juju's form.

use std::{collections::BTreeMap, sync::Arc};

use periapt_host_api::{
    ModelUuid,
    status::{
        CombinedStorage, FilesystemAttachments, FilesystemInfo, Life, MachineFilesystem, StatusText,
        StorageAttachments, StorageInfo, UnitStorageInfo,
    },
    storage::StorageKind,
};

use super::life;
use crate::{
    entity::Storage,
    root::{ModelState, Root},
};

/// Returns the output of `storage` for a model, if the model exists.
pub fn combined_storage(root: &Root, model: &ModelUuid) -> Option<CombinedStorage> {
    Some(combined(root.model(model)?))
}

pub(crate) fn combined(state: &ModelState) -> CombinedStorage {
    let each = |found: &Arc<Storage>| (found.id.to_string(), info(state, found));
    let place = |found: &Arc<Storage>| (found.id.number().to_string(), filesystem(state, found));
    CombinedStorage {
        storage: state.storages().map(each).collect(),
        filesystems: state.storages().map(place).collect(),
    }
}

fn info(state: &ModelState, storage: &Storage) -> StorageInfo {
    StorageInfo {
        kind: StorageKind::Filesystem.to_string(),
        life: storage.life().to_string(),
        status: status(storage),
        persistent: true,
        attachments: unit(state, storage)
            .map(|(name, unit)| StorageAttachments { units: BTreeMap::from([(name, unit)]) }),
        waits_for: life::waits_for(storage),
    }
}

fn filesystem(state: &ModelState, storage: &Storage) -> FilesystemInfo {
    let attachments = storage.attachment.as_ref().map(|attachment| {
        let machine = state.unit(&attachment.unit).and_then(|unit| unit.machine);
        let seen = MachineFilesystem {
            mount_point: attachment.location.clone(),
            read_only: attachment.read_only,
            life: attachment.life.to_string(),
        };
        FilesystemAttachments {
            machines: machine.map(|machine| (machine.to_string(), seen)).into_iter().collect(),
            units: unit(state, storage).into_iter().collect(),
        }
    });
    FilesystemInfo {
        provider_id: storage.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
        storage: storage.id.to_string(),
        attachments,
        pool: storage.pool.clone(),
        size: storage.size,
        life: storage.life().to_string(),
        status: status(storage),
    }
}

fn unit(state: &ModelState, storage: &Storage) -> Option<(String, UnitStorageInfo)> {
    let attachment = storage.attachment.as_ref()?;
    let machine = state.unit(&attachment.unit).and_then(|unit| unit.machine);
    let info = UnitStorageInfo {
        machine: machine.map(|machine| machine.to_string()).unwrap_or_default(),
        location: attachment.location.clone(),
        life: attachment.life.to_string(),
    };
    Some((attachment.unit.to_string(), info))
}

fn status(storage: &Storage) -> StatusText {
    let current = match (&storage.failure, &storage.attachment, &storage.agent) {
        (Some(_), ..) => "error",
        (None, _, None) => "pending",
        (None, Some(attachment), Some(_)) if attachment.life != Life::Alive => "detaching",
        (None, Some(_), Some(_)) => "attached",
        (None, None, Some(_)) if storage.end.is_some() => "removing",
        (None, None, Some(_)) => "detached",
    };
    StatusText {
        current: current.to_owned(),
        message: storage.failure.as_ref().or(storage.no_room.as_ref()).cloned().unwrap_or_default(),
        since: Some(storage.since),
        version: String::new(),
    }
}
