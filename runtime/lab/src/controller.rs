//! The controller of a laboratory: the real model over a store that is a map.

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal, Revision, StoreId, Timestamp, UnitName,
    command::Caller,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};
use periapt_model::{
    Changes, Entity, EntityKey, Environment, Input, MAX_BYTES, Output, RecordAppend, RecordBody, Root,
    WorkSchedule, WorkerCommand, due_work, evaluate, open_content, resource_for_unit, seal_input,
    secret_for_unit,
};
use uuid::Uuid;

use crate::{LabError, clock::Clock, random::RandomNumbers, sealer::KeylessSealer, transport::transported};

/// The most steps of the controller's workers in a row. More are an endless loop.
const MAX_WORKER_STEPS: usize = 10_000;

/// A controller without network and disk.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    root: Root,
    store: BTreeMap<EntityKey, Entity>,
    store_id: StoreId,
    records: Vec<RecordAppend>,
    random: RandomNumbers,
}

impl Controller {
    pub(crate) fn new(mut random: RandomNumbers) -> Self {
        Self {
            root: Root::default(),
            store: BTreeMap::new(),
            store_id: StoreId(Uuid::from_bytes(random.bytes())),
            records: Vec::new(),
            random,
        }
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    pub(crate) fn store_id(&self) -> StoreId {
        self.store_id
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &RecordAppend> {
        self.records.iter()
    }

    /// Evaluates a request, and applies its changes.
    pub(crate) fn submit(&mut self, clock: Clock, caller: &Caller, input: &Input) -> Result<Output, Refusal> {
        let env = Environment { now: clock.now(), lease_now_ms: clock.boot_ms(), seed: self.random.bytes() };
        let mut input = input.clone();
        seal_input(&self.root, &mut input, &KeylessSealer, env.seed)?;
        let (changes, output) = evaluate(&self.root, caller, &input, &env)?;
        if let Input::Runner(..) = input {
            fit(&changes)?;
        }
        self.apply(changes);
        Ok(output)
    }

    /// Returns a secret's content that a runner fetches for a unit.
    pub(crate) fn secret(
        &self,
        caller: &Caller,
        unit: &UnitName,
        key: &SecretKey,
    ) -> Result<SecretData, Refusal> {
        let (sealed, what) = secret_for_unit(&self.root, caller, unit, key)?;
        open_content(&KeylessSealer, what, &sealed)
            .ok_or_else(|| Refusal::new(ErrorCode::Internal, "the laboratory lost its key"))
    }

    /// Checks that a runner may fetch a resource for a unit.
    pub(crate) fn resource(
        &self,
        caller: &Caller,
        unit: &UnitName,
        key: &ResourceKey,
    ) -> Result<(), Refusal> {
        resource_for_unit(&self.root, caller, unit, key)
    }

    /// Stores an entity past all rules, as a restored backup would.
    pub(crate) fn overwrite(&mut self, key: EntityKey, entity: Entity) {
        self.apply(Changes { puts: BTreeMap::from([(key, Some(entity))]), ..Changes::default() });
    }

    fn apply(&mut self, changes: Changes) {
        // Changes in memory alone make no revision: nobody watches them.
        let step = u64::from(!changes.stores_nothing());
        self.root = self.root.apply(&changes, Revision(self.root.revision().0.saturating_add(step)));
        for (key, entity) in changes.puts {
            match entity {
                Some(entity) => self.store.insert(key, entity),
                None => self.store.remove(&key),
            };
        }
        self.records.extend(changes.records);
    }

    /// Does all work that is due for the controller's workers. Returns true if there was any.
    pub(crate) fn work(&mut self, clock: Clock) -> Result<bool, LabError> {
        for step in 0..MAX_WORKER_STEPS {
            let (commands, _) = due_work(&self.root, clock.now(), clock.boot_ms(), &WorkSchedule::default());
            if commands.is_empty() {
                return Ok(step > 0);
            }
            for command in commands {
                self.worker(clock, command)?;
            }
        }
        let (commands, _) = due_work(&self.root, clock.now(), clock.boot_ms(), &WorkSchedule::default());
        let last = commands.iter().map(|command| format!("{command:?}")).collect();
        Err(LabError::NeverSettles { rounds: MAX_WORKER_STEPS, last })
    }

    /// Returns the next time at which the clock alone gives the workers work.
    pub(crate) fn wake_at(&self, clock: Clock) -> Option<Timestamp> {
        due_work(&self.root, clock.now(), clock.boot_ms(), &WorkSchedule::default()).1
    }

    pub(crate) fn worker(&mut self, clock: Clock, command: WorkerCommand) -> Result<(), Refusal> {
        self.submit(clock, &Caller::Worker, &Input::Worker(command)).map(|_| ())
    }

    /// Forgets the written records.
    pub(crate) fn forget_records(&mut self) {
        self.records.clear();
    }

    /// Iterates over all stored entities, by key.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Entity> {
        self.store.values()
    }

    /// Ends the process and starts it again. State in memory alone is lost.
    pub(crate) fn restart(&mut self, clock: Clock) -> Result<(), LabError> {
        let mut stored = Vec::with_capacity(self.store.len());
        for (key, entity) in &self.store {
            stored.push((transported("a key", key)?, transported("an entity", entity)?));
        }
        let root = Root::from_entities(stored, self.root.revision())?;
        self.root = root.restart(clock.now(), clock.boot_ms());
        Ok(())
    }

    /// Iterates over the records of one entity, the oldest first.
    pub(crate) fn records_of<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a RecordBody> {
        self.records().filter(move |record| record.entity == entity).map(|record| &record.body)
    }
}

/// Bytes of a key and a value in a store beside their JSON.
const FRAME_BYTES: usize = 50;

/// Refuses changes that exceed a store's bound for one commit.
fn fit(changes: &Changes) -> Result<(), Refusal> {
    let size =
        |value: &dyn Fn() -> serde_json::Result<Vec<u8>>| value().map_or(usize::MAX, |json| json.len());
    let bytes = changes.puts.iter().fold(0_usize, |sum, (key, entity)| {
        let key = size(&|| serde_json::to_vec(key));
        let value = entity.as_ref().map_or(0, |entity| size(&|| serde_json::to_vec(entity)));
        sum.saturating_add(key).saturating_add(value).saturating_add(FRAME_BYTES)
    });
    match bytes {
        bytes if bytes > MAX_BYTES => Err(Refusal::new(
            ErrorCode::QuotaExceeded,
            format!("this would write {bytes} bytes at once, at most {MAX_BYTES} are allowed"),
        )),
        _ => Ok(()),
    }
}
