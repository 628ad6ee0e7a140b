//! Storage as the charm sees it (`docs/hook-model.md` 5.8). The sandbox handles its files.

use periapt_host_api::{StorageId, StorageName, storage::StorageKind, view::StorageView};
use serde::{Deserialize, Serialize};

use crate::{
    CallError,
    context::{HookContext, HookRun},
};

/// The most instances that one call may request: far more than any unit may have.
const MAX_COUNT: u32 = 1_000;

/// The part of an instance that a charm sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MountedStorage {
    /// The kind; always a filesystem.
    pub kind: StorageKind,
    /// The path in the hook.
    pub location: String,
}

/// The typed interface: `storage`.
impl HookContext {
    /// Returns the unit's instances, of one storage or of all.
    pub fn storage_list(&mut self, name: Option<&str>) -> Vec<StorageId> {
        self.call("storage.list", (name,), |run| run.storage_ids(name))
    }

    /// Returns one instance, by its id.
    pub fn storage_get(&mut self, id: &str) -> Result<MountedStorage, CallError> {
        self.call("storage.get", (id,), |run| run.storage_info(run.find_storage(id)?))
    }

    /// Requests more instances of a storage.
    pub fn storage_add(&mut self, name: &str, count: u32) -> Result<(), CallError> {
        self.call("storage.add", (name, count), |run| {
            let name = StorageName::new(name).map_err(|error| CallError::invalid(error.to_string()))?;
            run.add_storage(&[(name, count)])
        })
    }
}

impl HookRun {
    /// Returns the unit's instances, of one storage or of all, with those not yet provisioned or being
    /// removed.
    pub(crate) fn storage_ids(&self, name: Option<&str>) -> Vec<StorageId> {
        let own = self.own_storage().map(|storage| storage.id.clone());
        own.filter(|id| name.is_none_or(|name| id.name().as_str() == name)).collect()
    }

    /// Returns one instance of the unit. An instance of another unit gives the same error as one that does
    /// not exist.
    pub(crate) fn find_storage(&self, text: &str) -> Result<&StorageView, CallError> {
        let id: Option<StorageId> = text.parse().ok();
        let found = self.own_storage().find(|storage| Some(&storage.id) == id.as_ref());
        found.ok_or_else(|| CallError::NotFound(format!("storage {text:?} not found")))
    }

    /// Returns the details of an instance that is ready for use.
    pub(crate) fn storage_info(&self, storage: &StorageView) -> Result<MountedStorage, CallError> {
        match storage.attachment.as_ref().filter(|_| storage.provisioned) {
            Some(attachment) => {
                Ok(MountedStorage { kind: StorageKind::Filesystem, location: attachment.location.clone() })
            }
            None => {
                Err(CallError::NotReady(format!("storage {:?} is not provisioned", storage.id.to_string())))
            }
        }
    }

    /// Returns the instance of the hook.
    pub(crate) fn hook_storage(&self) -> Option<&StorageId> {
        self.event.storage().map(|context| &context.storage)
    }

    /// Requests more instances. The commit checks how many there may be.
    pub(crate) fn add_storage(&mut self, requests: &[(StorageName, u32)]) -> Result<(), CallError> {
        for (name, count) in requests {
            let name = name.as_str();
            if !self.snapshot.meta().storage.keys().any(|declared| declared.as_str() == name) {
                return Err(CallError::NotFound(format!("charm storage {name:?} not found")));
            }
            if *count == 0 {
                return Err(CallError::invalid(
                    "cannot parse count: count must be greater than zero, got \"0\"",
                ));
            }
            if *count > MAX_COUNT {
                let text =
                    format!("{count} instances of storage {name:?} at once; at most {MAX_COUNT} are allowed");
                return Err(CallError::LimitExceeded(text));
            }
        }
        self.effects.add_storage(requests, &self.limits)
    }

    fn own_storage(&self) -> impl Iterator<Item = &StorageView> {
        let unit = &self.snapshot.unit;
        self.snapshot.view.storages.values().filter(move |storage| {
            storage.attachment.as_ref().is_some_and(|attachment| attachment.unit == *unit)
        })
    }
}
