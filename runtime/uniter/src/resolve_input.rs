//! The input of the resolver's rules: one unit in its view.

mod run;

use periapt_host_api::{
    ContainerName, EndpointName, RelationId, Revision, StorageId, UnitName,
    record::{Operation, SeenHashes, UnitRecord},
    relation::{BagKey, BagOwner},
    status::Life,
    view::{ApplicationView, MachineView, ModelView, StorageAttachment, StorageView, UnitView, View},
};

use crate::{Decision, UnitWorkloads};

/// A unit with the entries of its view that concern it.
pub(crate) struct ResolveInput<'a> {
    pub(crate) view: &'a View,
    pub(crate) model: &'a ModelView,
    pub(crate) unit: &'a UnitView,
    pub(crate) application: &'a ApplicationView,
    machine: Option<&'a MachineView>,
    /// The workloads beside the unit.
    pub(crate) workloads: &'a UnitWorkloads,
}

impl<'a> ResolveInput<'a> {
    /// Finds a unit. Without one, the result is a decision: wait for the first frame (U-4), or stop if a
    /// filled view does not contain the unit (U-17).
    pub(crate) fn find(
        view: &'a View,
        name: &UnitName,
        workloads: &'a UnitWorkloads,
    ) -> Result<Self, Decision> {
        let nothing_yet = view.model.is_none() && view.revision == Revision::default();
        let gone = if nothing_yet { Decision::Wait { wake_at: None } } else { Decision::Stop };
        let (Some(model), Some(unit)) = (&view.model, view.units.get(name)) else {
            return Err(gone);
        };
        // A view with a unit but without its application is incomplete. The next frame completes it.
        let application =
            view.applications.get(name.application()).ok_or(Decision::Wait { wake_at: None })?;
        Ok(Self { view, model, unit, application, machine: view.machines.get(&unit.machine), workloads })
    }

    pub(crate) fn record(&self) -> &'a UnitRecord {
        &self.unit.record
    }

    /// Returns the interval of update-status hooks in seconds, the application's own or the model's; 0
    /// means off.
    pub(crate) fn update_status_interval(&self) -> u32 {
        self.application.update_status_interval.unwrap_or(self.model.config.update_status_hook_interval)
    }

    pub(crate) fn alive(&self) -> bool {
        self.unit.life == Life::Alive
    }

    /// Returns true if no operation is in progress.
    pub(crate) fn at_rest(&self) -> bool {
        self.record().operation == Operation::Continue
    }

    /// Returns true if the unit leads, according to the model.
    pub(crate) fn leads(&self) -> bool {
        self.application.leader.as_ref().is_some_and(|leader| leader.unit == self.unit.name)
    }

    /// Returns the boot id of the host; none if unknown.
    pub(crate) fn boot_id(&self) -> Option<&'a str> {
        self.machine.map(|machine| machine.boot_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Returns the hashes that config-changed compares.
    pub(crate) fn hashes(&self) -> SeenHashes {
        SeenHashes {
            config: self.application.config_hash.clone(),
            trust: self.application.trust_hash.clone(),
            addresses: match self.machine {
                Some(machine) => self.addresses_hash(&machine.addresses_hash),
                None => self.record().seen.addresses.clone(),
            },
        }
    }

    /// Returns a hash of the machine's addresses and of the bindings that select some of them.
    fn addresses_hash(&self, of_machine: &str) -> String {
        match self.application.bindings_hash.as_str() {
            "" => of_machine.to_owned(),
            of_bindings => format!("{of_machine}/{of_bindings}"),
        }
    }

    /// Returns the version of a bag; 0 if it was never written.
    pub(crate) fn bag_version(&self, relation: RelationId, owner: BagOwner) -> u64 {
        self.view.bags.get(&BagKey { relation, owner }).map_or(0, |bag| bag.version)
    }

    /// Returns the unit's storage, by id.
    pub(crate) fn storages(&self) -> impl Iterator<Item = (&'a StorageView, &'a StorageAttachment)> {
        let unit = &self.unit.name;
        self.view.storages.values().filter_map(move |storage| {
            storage.attachment.as_ref().filter(|attachment| attachment.unit == *unit).map(|it| (storage, it))
        })
    }

    /// Returns the unit's attachment of a storage instance.
    pub(crate) fn attachment(&self, id: &StorageId) -> Option<&'a StorageAttachment> {
        let attachment = self.view.storages.get(id)?.attachment.as_ref();
        attachment.filter(|attachment| attachment.unit == self.unit.name)
    }

    /// Returns true if the charm that the unit runs declares a container.
    pub(crate) fn declares(&self, container: &ContainerName) -> bool {
        let digest = self.record().charm.unwrap_or(self.application.charm).digest;
        self.view.charms.get(&digest).is_some_and(|charm| charm.meta.containers.contains_key(container))
    }

    /// Returns true if the unit's charm wants batches for an endpoint.
    pub(crate) fn batches(&self, endpoint: &EndpointName) -> bool {
        let digest = self.record().charm.unwrap_or(self.application.charm).digest;
        let meta = self.view.charms.get(&digest).and_then(|charm| charm.meta.endpoints.get(endpoint));
        meta.is_some_and(|meta| meta.batch)
    }
}
