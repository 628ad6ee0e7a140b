//! The transaction of one command on one model: it reads its own writes and collects them.

mod weight;

use std::{collections::BTreeSet, sync::Arc};

use periapt_host_api::{
    ApplicationName, ErrorCode, ModelUuid, Refusal, RelationId, Timestamp, UnitName,
    charm::CharmMeta,
    command::Force,
    secret::SecretId,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
};

use crate::{
    entity::{
        Application, CrossModelId, Entity, EntityKey, ModelKey, Relation, Sequence, SequenceKey, Unit, Work,
        WorkId, WorkItem,
    },
    input::Environment,
    root::{
        ModelState, Root,
        changes::{
            Changes, CrossModelCopy, MAX_BYTES, MAX_KEYS, RecordAppend, RecordBody, StatusRecord,
            VolatileChange,
        },
    },
};
pub(crate) use periapt_host_api::size::of_json as json_size;
use weight::Weights;

/// The bytes after which a worker's step leaves the rest to the next step. A step may add one more entity on top; the
/// largest of those, a unit with its record, takes little more than half of a commit.
const STEP_BYTES: usize = MAX_BYTES / 4;

/// The most bytes that an entity takes besides its value: its key with two names.
const ENTITY_BYTES: usize = 4 << 10;

/// A running command. `state` is a private copy that has all its writes so far.
pub(crate) struct Transaction<'a> {
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Environment,
    pub(crate) uuid: ModelUuid,
    pub(crate) state: ModelState,
    changes: Changes,
    weights: Weights,
    garbage: BTreeSet<SecretId>,
}

impl<'a> Transaction<'a> {
    /// Begins a transaction on a model.
    pub(crate) fn begin(root: &'a Root, env: &'a Environment, uuid: ModelUuid) -> Result<Self, Refusal> {
        Self::on(root, env, uuid, root.model(&uuid))
    }

    /// Begins a transaction on a model, or on the remains of a removed model, to clear them away.
    pub(crate) fn begin_or_clear(
        root: &'a Root,
        env: &'a Environment,
        uuid: ModelUuid,
    ) -> Result<Self, Refusal> {
        Self::on(root, env, uuid, root.model_or_remains(&uuid))
    }

    fn on(
        root: &'a Root,
        env: &'a Environment,
        uuid: ModelUuid,
        state: Option<&Arc<ModelState>>,
    ) -> Result<Self, Refusal> {
        let state = state.ok_or_else(|| Refusal::not_found(format!("model {uuid} not found")))?;
        let (state, changes, weights) = (ModelState::clone(state), Changes::default(), Weights::default());
        Ok(Self { root, env, uuid, state, changes, weights, garbage: BTreeSet::new() })
    }

    /// Ends the transaction and returns its writes, which fit into one commit of the store. `collect` uses the room
    /// that is left to delete leftovers of secrets ([`Self::note_garbage`]).
    pub(crate) fn finish(
        mut self,
        collect: impl FnOnce(&mut Self, &BTreeSet<SecretId>),
    ) -> Result<Changes, Refusal> {
        let garbage = std::mem::take(&mut self.garbage);
        collect(&mut self, &garbage);
        check_size(&self.changes)?;
        Ok(self.changes)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.env.now
    }

    /// Returns true if this commit has room for so many more entities, of which one may be large.
    pub(crate) fn has_room(&self, keys: usize) -> bool {
        self.changes.puts.len().saturating_add(keys) <= MAX_KEYS
            && self.weights.of(&self.changes) <= STEP_BYTES
    }

    /// Returns true if this commit has room for one entity whose size a charm or user chose. `bytes` is its stored
    /// form without its key. An empty transaction has room for every entity that an earlier commit could write.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        let whole = self.weights.of(&self.changes).saturating_add(bytes).saturating_add(ENTITY_BYTES);
        self.has_room(1) && whole <= MAX_BYTES
    }

    /// Returns the number of entities that this commit has room for.
    pub(crate) fn room(&self) -> usize {
        MAX_KEYS.saturating_sub(self.changes.puts.len())
    }

    /// Refuses to add anything to a model that is being destroyed (L-6).
    pub(crate) fn require_alive(&self) -> Result<(), Refusal> {
        let model = self.state.model();
        if model.life == Life::Alive {
            return Ok(());
        }
        Err(Refusal::not_alive(format!("model {:?} is no longer alive", model.name.as_str()))
            .about(format!("model {}", model.name)))
    }

    /// Writes an entity, unless the state already has it.
    pub(crate) fn put(&mut self, entity: impl Into<Entity>) {
        let entity = entity.into();
        let Some(key) = entity.model_key() else { return };
        if self.state.get(&key).as_ref() == Some(&entity) {
            return;
        }
        self.state.put(&key, Some(&entity));
        self.write(key, Some(entity));
    }

    /// Deletes an entity.
    pub(crate) fn delete(&mut self, key: ModelKey) {
        self.state.put(&key, None);
        self.write(key, None);
    }

    fn write(&mut self, key: ModelKey, entity: Option<Entity>) {
        let key = EntityKey::InModel(self.uuid, key);
        self.weights.forget(&key);
        self.changes.puts.insert(key, entity);
    }

    /// Hands out `count` numbers, and returns the first.
    pub(crate) fn take_numbers(&mut self, key: SequenceKey, count: u32) -> Result<u32, Refusal> {
        let first = self.state.next(&key);
        let next = first.saturating_add(u64::from(count));
        let full = || Refusal::new(ErrorCode::QuotaExceeded, "all numbers of this kind are used up");
        u32::try_from(next).map_err(|_| full())?;
        self.put(Sequence { key, next });
        u32::try_from(first).map_err(|_| full())
    }

    /// Notes a removed secret, or one of which a revision lost a reader. Its leftovers are deleted at the end of the
    /// commit, in the room that is left, so that they never take the command's own room.
    pub(crate) fn note_garbage(&mut self, id: SecretId) {
        self.garbage.insert(id);
    }

    /// Adds a work item, to be done after this commit.
    pub(crate) fn add_work(&mut self, work: Work, due: Option<Timestamp>) {
        let id = self.state.next(&SequenceKey::Work);
        self.put(Sequence { key: SequenceKey::Work, next: id.saturating_add(1) });
        self.put(WorkItem { id: WorkId(id), due, work });
    }

    /// Returns the time at which a forced removal no longer waits for the agent.
    pub(crate) fn force_due(&self, force: Force) -> Timestamp {
        let wait = jiff::SignedDuration::from_secs(i64::from(force.max_wait));
        self.now().checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn application(&self, name: &ApplicationName) -> Result<Arc<Application>, Refusal> {
        self.state.application(name).cloned().ok_or_else(|| {
            Refusal::not_found(format!("application {:?} not found", name.as_str()))
                .about(format!("application {name}"))
        })
    }

    pub(crate) fn unit(&self, name: &UnitName) -> Result<Arc<Unit>, Refusal> {
        self.state.unit(name).cloned().ok_or_else(|| {
            Refusal::not_found(format!("unit {name:?} not found")).about(format!("unit {name}"))
        })
    }

    /// Returns a relation that is not dead: operators can name it and units can enter it.
    pub(crate) fn relation(&self, id: &RelationId) -> Result<Arc<Relation>, Refusal> {
        self.state.relation(id).filter(|relation| relation.life != Life::Dead).cloned().ok_or_else(|| {
            Refusal::not_found(format!("relation {id} not found")).about(format!("relation {id}"))
        })
    }

    /// Returns the metadata of an application's charm.
    pub(crate) fn charm_meta(&self, application: &Application) -> Result<&'a CharmMeta, Refusal> {
        match self.root.charm(&application.charm.digest) {
            Some(charm) => Ok(&charm.meta),
            None => Err(Refusal::new(
                ErrorCode::Internal,
                format!("the charm of application {} is not on record", application.name),
            )),
        }
    }

    /// Appends a record (log line, status or journal).
    pub(crate) fn record(&mut self, entity: impl ToString, at: Timestamp, body: RecordBody) {
        self.changes.records.push(RecordAppend { model: self.uuid, entity: entity.to_string(), at, body });
    }

    /// Sets or clears the expiry of an application's leadership lease. Leases are kept in memory only.
    pub(crate) fn set_lease(&mut self, application: &ApplicationName, expires_ms: Option<u64>) {
        let application = application.clone();
        self.changes.volatile.push(VolatileChange::Lease { model: self.uuid, application, expires_ms });
    }

    /// Notes that a model must look at a cross-model relation again, or has looked at it.
    pub(crate) fn note_copy(&mut self, model: ModelUuid, relation: CrossModelId, copy: CrossModelCopy) {
        self.changes.volatile.push(VolatileChange::Crossing { model, relation, copy });
    }

    /// Sets a unit's workload status. Returns false, and changes nothing, if the status is the same (ST-3).
    pub(crate) fn set_workload_status(&mut self, unit: &mut Unit, next: StatusInfo<WorkloadStatus>) -> bool {
        let changed = replace_status(&mut unit.workload_status, next);
        if changed {
            unit.refreshed.workload = None;
            let status = unit.workload_status.clone();
            self.record(&unit.name, status.since, RecordBody::Status(StatusRecord::Workload(status)));
        }
        changed
    }

    /// Sets a unit's agent status. Returns false, and changes nothing, if the status is the same (ST-3).
    pub(crate) fn set_agent_status(&mut self, unit: &mut Unit, next: StatusInfo<AgentStatus>) -> bool {
        let changed = replace_status(&mut unit.agent_status, next);
        if changed {
            unit.refreshed.agent = None;
            let status = unit.agent_status.clone();
            self.record(&unit.name, status.since, RecordBody::Status(StatusRecord::Agent(status)));
        }
        changed
    }

    /// Sets an application's status. Returns false, and changes nothing, if the status is the same (ST-3).
    pub(crate) fn set_application_status(
        &mut self,
        application: &mut Application,
        next: StatusInfo<WorkloadStatus>,
    ) -> bool {
        let changed = match &mut application.status {
            Some(present) => replace_status(present, next),
            absent => {
                *absent = Some(next);
                true
            }
        };
        if let Some(status) = application.status.clone().filter(|_| changed) {
            application.status_refreshed = None;
            self.record(
                &application.name,
                status.since,
                RecordBody::Status(StatusRecord::Application(status)),
            );
        }
        changed
    }
}

fn replace_status<S: PartialEq>(present: &mut StatusInfo<S>, next: StatusInfo<S>) -> bool {
    let same = present.status == next.status && present.message == next.message && present.data == next.data;
    if !same {
        *present = next;
    }
    !same
}

/// Refuses more entities than a store takes in one commit. The bytes are checked later, when the stored form is made.
pub(crate) fn check_size(changes: &Changes) -> Result<(), Refusal> {
    match changes.puts.len() {
        keys if keys > MAX_KEYS => {
            let text = format!("this would write {keys} entities at once, at most {MAX_KEYS} are allowed");
            Err(Refusal::new(ErrorCode::QuotaExceeded, text))
        }
        _ => Ok(()),
    }
}
