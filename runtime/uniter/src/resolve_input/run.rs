//! The decisions to run a hook or to fetch a charm, with the state that they are based on.

use std::collections::BTreeMap;

use periapt_host_api::{
    ContainerName, OperationId, RelationId, Timestamp, UnitName,
    event::Event,
    record::{HookStep, Operation, SecretRecord, UnitRecord, WorkloadRecord},
    relation::BagOwner,
    secret::{SecretId, SecretRevision},
};

use super::ResolveInput;
use crate::{Decision, DeployRun, HookRun, SeenVersions, coalesced, relation as relations};

impl ResolveInput<'_> {
    /// Returns the versions in this view that an event concerns.
    pub(crate) fn seen(&self, event: &Event) -> SeenVersions {
        let relation = event.relation();
        let bag = relation.map(|context| {
            let owner = match event.remote_unit() {
                Some(unit) => BagOwner::Unit(unit.clone()),
                None => BagOwner::Application(context.remote_application.clone()),
            };
            self.bag_version(context.relation, owner)
        });
        let secret = event.secret().and_then(|context| self.view.secrets.get(&context.id));
        SeenVersions {
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
            gone: relation.map_or(0, |context| relations::gone(self, context.relation)),
            relation_exists: relation
                .is_some_and(|it| !relations::is_gone(self.view.relations.get(&it.relation))),
            workloads: self.remembered_workloads(event),
            update_status_interval: self.update_status_interval(),
        }
    }

    /// Returns the versions of the bags that a batch concerns.
    fn member_versions(&self, relation: RelationId, event: &Event) -> BTreeMap<UnitName, u64> {
        let units = event.batch().into_iter().flat_map(|batch| batch.joined.iter().chain(&batch.changed));
        units.map(|unit| (unit.clone(), self.bag_version(relation, BagOwner::Unit(unit.clone())))).collect()
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

    /// Returns the unit's knowledge of its workloads after an event about one of them, without those that the charm does
    /// not declare any more.
    fn remembered_workloads(&self, event: &Event) -> BTreeMap<ContainerName, WorkloadRecord> {
        let Some(container) = event.container() else { return BTreeMap::new() };
        let known = self.record().workloads.iter().filter(|(name, _)| self.declares(name));
        let mut workloads: BTreeMap<_, _> = known.map(|(name, told)| (name.clone(), told.clone())).collect();
        let told = match (event.notice(), self.workloads.get(container)) {
            (Some(notice), _) => Some((&notice.boot_id, notice.number)),
            // The notices of a start are counted from it.
            (None, listening) => listening.map(|workload| (&workload.boot_id, 0)),
        };
        if let Some((boot_id, told)) = told {
            workloads.insert(container.clone(), WorkloadRecord { boot_id: boot_id.clone(), told });
        }
        workloads
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
        let beside_workloads = !self.workloads.is_empty();
        let durable = self.storages().next().is_some() || beside_workloads;
        let run = self.hook_run(event, attempt, record.clone(), now);
        Decision::RunHook(Box::new(HookRun { failures, operation, durable, beside_workloads, ..run }))
    }

    /// Returns the first run of an event.
    pub(crate) fn hook_run(&self, event: Event, attempt: u32, record: UnitRecord, now: Timestamp) -> HookRun {
        HookRun {
            unit: self.unit.name.clone(),
            attempt,
            failures: 0,
            operation: OperationId(record.seq),
            durable: false,
            beside_workloads: false,
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
