//! The input of the resolver's rules: one unit in its view.

use std::collections::BTreeMap;

use periapt_host_api::{
    EndpointName, OperationId, RelationId, Revision, StorageId, Timestamp, UnitName,
    event::Event,
    record::{HookStep, Operation, SecretRecord, SeenHashes, UnitRecord},
    relation::{BagKey, BagOwner},
    secret::{SecretId, SecretRevision},
    status::Life,
    view::{ApplicationView, MachineView, ModelView, StorageAttachment, StorageView, UnitView, View},
};

use crate::{Decision, DeployRun, HookRun, Seen, coalesced};

/// A unit with the entries of its view that concern it.
pub(crate) struct ResolveInput<'a> {
    pub(crate) view: &'a View,
    pub(crate) model: &'a ModelView,
    pub(crate) unit: &'a UnitView,
    pub(crate) application: &'a ApplicationView,
    machine: Option<&'a MachineView>,
}

impl<'a> ResolveInput<'a> {
    /// Finds a unit. Without one, the result is a decision: wait for the first frame (U-4), or stop if a
    /// filled view does not contain the unit (U-17).
    pub(crate) fn find(view: &'a View, name: &UnitName) -> Result<Self, Decision> {
        let nothing_yet = view.model.is_none() && view.revision == Revision::default();
        let gone = if nothing_yet { Decision::Wait { wake_at: None } } else { Decision::Stop };
        let (Some(model), Some(unit)) = (&view.model, view.units.get(name)) else {
            return Err(gone);
        };
        // A view with a unit but without its application is incomplete. The next frame completes it.
        let application =
            view.applications.get(name.application()).ok_or(Decision::Wait { wake_at: None })?;
        Ok(Self { view, model, unit, application, machine: view.machines.get(&unit.machine) })
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

    /// Returns the versions in this view that an event concerns.
    pub(crate) fn seen(&self, event: &Event) -> Seen {
        let relation = event.relation();
        let bag = relation.map(|context| {
            let owner = match event.remote_unit() {
                Some(unit) => BagOwner::Unit(unit.clone()),
                None => BagOwner::Application(context.remote_application.clone()),
            };
            self.bag_version(context.relation, owner)
        });
        let secret = event.secret().and_then(|context| self.view.secrets.get(&context.id));
        Seen {
            secret_latest: secret.map_or(SecretRevision::default(), |secret| secret.latest),
            secrets: event.secret().map(|_| self.remembered_secrets()).unwrap_or_default(),
            hashes: self.hashes(),
            leader_settings_version: self.application.leader_settings_version,
            settings_version: self.application.settings_version,
            boot_id: self.boot_id().map(str::to_owned),
            bag_version: bag.unwrap_or(0),
            member_versions: relation
                .map(|context| self.member_versions(context.relation, event))
                .unwrap_or_default(),
            gone: relation.map_or(0, |context| crate::relation::gone(self, context.relation)),
            relation_exists: relation
                .is_some_and(|it| !crate::relation::is_gone(self.view.relations.get(&it.relation))),
            update_status_interval: self.update_status_interval(),
        }
    }

    /// Returns the versions of the bags that a batch concerns.
    fn member_versions(&self, relation: RelationId, event: &Event) -> BTreeMap<UnitName, u64> {
        let units = event.batch().into_iter().flat_map(|batch| batch.joined.iter().chain(&batch.changed));
        units.map(|unit| (unit.clone(), self.bag_version(relation, BagOwner::Unit(unit.clone())))).collect()
    }

    /// Returns true if the unit's charm wants batches for an endpoint.
    pub(crate) fn batches(&self, endpoint: &EndpointName) -> bool {
        let digest = self.record().charm.unwrap_or(self.application.charm).digest;
        let meta = self.view.charms.get(&digest).and_then(|charm| charm.meta.endpoints.get(endpoint));
        meta.is_some_and(|meta| meta.batch)
    }

    /// Returns the unit's knowledge of secrets, without those and the revisions that are gone.
    fn remembered_secrets(&self) -> BTreeMap<SecretId, SecretRecord> {
        let known = self.record().secrets.iter().filter_map(|(id, told)| {
            let secret = self.view.secrets.get(id)?;
            let there = |revision: &SecretRevision| {
                secret.owned.as_ref().is_none_or(|owned| owned.revisions.contains_key(revision))
            };
            let obsolete = told.obsolete.iter().copied().filter(there).collect();
            Some((*id, SecretRecord { changed: told.changed, obsolete }))
        });
        known.collect()
    }

    /// Returns the decision to run a hook now.
    pub(crate) fn run(&self, event: Event, now: Timestamp) -> Decision {
        let record = self.record();
        let failures = match &record.operation {
            Operation::Hook { event: failed, step: HookStep::Failed(failure) }
                if event.is_attempt_of(failed) =>
            {
                failure.attempts
            }
            _ => 0,
        };
        let begun = record.begun.as_ref().filter(|begun| event.is_attempt_of(&begun.event));
        let attempt = begun.map_or(failures, |begun| begun.attempt).saturating_add(1);
        let operation = begun.map_or(OperationId(record.seq), |begun| begun.operation);
        let durable = self.storages().next().is_some();
        let run = self.hook_run(event, attempt, record.clone(), now);
        Decision::RunHook(Box::new(HookRun { failures, operation, durable, ..run }))
    }

    /// Returns the first run of an event.
    pub(crate) fn hook_run(&self, event: Event, attempt: u32, record: UnitRecord, now: Timestamp) -> HookRun {
        HookRun {
            unit: self.unit.name.clone(),
            attempt,
            failures: 0,
            operation: OperationId(record.seq),
            durable: false,
            coalesced: coalesced::by(self, &event, now),
            charm: record.charm.unwrap_or(self.application.charm),
            seen: self.seen(&event),
            snapshot: self.view.revision,
            decided_at: now,
            event,
            record,
        }
    }

    /// Returns the decision to deploy the application's charm.
    pub(crate) fn deploy(&self) -> Decision {
        Decision::Deploy(Box::new(DeployRun {
            unit: self.unit.name.clone(),
            charm: self.application.charm,
            record: self.record().clone(),
        }))
    }
}
