//! One model's state.

use std::sync::Arc;

use imbl::OrdSet;
use periapt_host_api::{
    ActionOperationId, AgentName, ApplicationName, Digest, MachineId, RelationId, StorageId, TaskId,
    Timestamp, UnitName,
    relation::BagKey,
    settings::{ModelConfig, ModelSettings},
    state::StateKey,
    status::Life,
    view::Membership,
};

pub(crate) mod derived;
mod diff;
mod hosted;
mod kinds;
mod offers;
mod secrets;
mod table;

pub(crate) use derived::SecretDue;
pub(crate) use diff::Touched;

use crate::entity::{
    ActionOperation, Application, Bag, Machine, Model, ModelCharm, PendingEvents, Relation, Runner, Sequence,
    SequenceKey, StateEntry, Storage, Task, Unit, WorkId, WorkItem,
};
use derived::Derived;
use kinds::Tables;

/// All entities of one model, and what is derived from them to find them quickly.
#[derive(Debug, Clone)]
pub struct ModelState {
    model: Arc<Model>,
    /// What its controller sets for all models.
    defaults: Arc<ModelSettings>,
    /// What holds: derived from both.
    config: Arc<ModelConfig>,
    tables: Tables,
    derived: Derived,
}

impl ModelState {
    pub(super) fn new(model: Arc<Model>, defaults: Arc<ModelSettings>) -> Self {
        Self {
            config: Arc::new(model.settings.config(&defaults)),
            defaults,
            model,
            tables: Tables::default(),
            derived: Derived::default(),
        }
    }

    pub(super) fn set_model(&mut self, model: Arc<Model>) {
        if model.settings != self.model.settings {
            self.config = Arc::new(model.settings.config(&self.defaults));
        }
        self.model = model;
    }

    pub(super) fn set_defaults(&mut self, defaults: Arc<ModelSettings>) {
        self.config = Arc::new(self.model.settings.config(&defaults));
        self.defaults = defaults;
    }

    /// The model itself.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model's configuration: what it sets, or else its controller, or else the default.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Of the configuration, what its controller sets for all models.
    pub fn defaults(&self) -> &ModelSettings {
        &self.defaults
    }

    /// A charm that the model uses.
    pub fn charm(&self, digest: &Digest) -> Option<&ModelCharm> {
        self.tables.charms.get(digest).map(Arc::as_ref)
    }

    /// The charms that the model uses.
    pub fn charms(&self) -> impl Iterator<Item = &ModelCharm> {
        self.tables.charms.values().map(Arc::as_ref)
    }

    /// The next number of a sequence.
    pub fn next(&self, key: &SequenceKey) -> u64 {
        self.tables.sequences.get(key).map_or(0, |sequence| sequence.next)
    }

    /// The sequences.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.tables.sequences.values().map(Arc::as_ref)
    }

    /// The runner of an agent.
    pub fn runner(&self, agent: &AgentName) -> Option<&Runner> {
        self.tables.runners.get(agent).map(Arc::as_ref)
    }

    /// The runners that ever attached.
    pub fn runners(&self) -> impl Iterator<Item = &Runner> {
        self.tables.runners.values().map(Arc::as_ref)
    }

    /// An application.
    pub fn application(&self, name: &ApplicationName) -> Option<&Arc<Application>> {
        self.tables.applications.get(name)
    }

    /// The applications, by name.
    pub fn applications(&self) -> impl Iterator<Item = &Arc<Application>> {
        self.tables.applications.values()
    }

    /// A machine.
    pub fn machine(&self, id: &MachineId) -> Option<&Arc<Machine>> {
        self.tables.machines.get(id)
    }

    /// The machines, by number.
    pub fn machines(&self) -> impl Iterator<Item = &Arc<Machine>> {
        self.tables.machines.values()
    }

    /// The machines that an agent hosts.
    pub fn machines_of(&self, agent: &AgentName) -> impl Iterator<Item = &Arc<Machine>> {
        self.derived.machines_of.get(agent).filter_map(|id| self.tables.machines.get(id))
    }

    /// A unit.
    pub fn unit(&self, name: &UnitName) -> Option<&Arc<Unit>> {
        self.tables.units.get(name)
    }

    /// All units, by name.
    pub fn units(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.tables.units.values()
    }

    /// How many units there are.
    pub fn unit_count(&self) -> usize {
        self.tables.units.len()
    }

    /// The units of an application, by number.
    pub fn units_of(&self, application: &ApplicationName) -> impl Iterator<Item = &Arc<Unit>> {
        let first = UnitName::new(application.clone(), 0);
        let last = UnitName::new(application.clone(), u32::MAX);
        self.tables.units.range(first..=last).map(|(_, unit)| unit)
    }

    /// The units of an application behind one of them, by number; none: all.
    pub(crate) fn units_of_behind(
        &self,
        application: &ApplicationName,
        unit: Option<&UnitName>,
    ) -> impl Iterator<Item = &Arc<Unit>> {
        let first = unit.map_or(0, |unit| unit.number().saturating_add(1));
        let last = UnitName::new(application.clone(), u32::MAX);
        self.tables.units.range(UnitName::new(application.clone(), first)..=last).map(|(_, unit)| unit)
    }

    /// The units on a machine, subordinates included.
    pub fn units_on(&self, machine: &MachineId) -> impl Iterator<Item = &Arc<Unit>> {
        self.derived.units_on.get(machine).filter_map(|name| self.tables.units.get(name))
    }

    /// How many units are on a machine.
    pub fn unit_count_on(&self, machine: &MachineId) -> usize {
        self.derived.units_on.len(machine)
    }

    /// The subordinates of a unit that are still there.
    pub fn subordinates_of(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<Unit>> {
        self.derived.subordinates_of.get(unit).filter_map(|name| self.tables.units.get(name))
    }

    /// Units that have no machine yet.
    pub fn unplaced(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.derived.unplaced.iter().filter_map(|name| self.tables.units.get(name))
    }

    /// The names of units that have no machine yet, as they are now.
    pub(crate) fn unplaced_names(&self) -> OrdSet<UnitName> {
        self.derived.unplaced.clone()
    }

    /// The agent that runs a unit.
    pub fn agent_of(&self, unit: &Unit) -> Option<&AgentName> {
        self.machine(&unit.machine?).map(|machine| &machine.agent)
    }

    /// A relation, in whatever life.
    pub fn relation(&self, id: &RelationId) -> Option<&Arc<Relation>> {
        self.tables.relations.get(id)
    }

    /// All relations, by number.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.tables.relations.values()
    }

    /// The relations of an application, by number.
    pub fn relations_of(&self, application: &ApplicationName) -> impl Iterator<Item = &Arc<Relation>> {
        self.derived.relations_of.get(application).filter_map(|id| self.tables.relations.get(id))
    }

    /// The units in a relation's scope.
    pub fn members(&self, relation: &RelationId) -> impl Iterator<Item = (&UnitName, &Membership)> {
        self.tables.members.of(relation).map(|member| (&member.unit, &member.membership))
    }

    /// How many units are in a relation's scope.
    pub fn member_count(&self, relation: &RelationId) -> usize {
        self.tables.members.count(relation)
    }

    /// A unit's place in a relation's scope.
    pub fn membership(&self, relation: &RelationId, unit: &UnitName) -> Option<Membership> {
        self.tables.members.get(relation)?.get(unit).map(|member| member.membership)
    }

    /// The relations in whose scope a unit is.
    pub fn scopes_of(&self, unit: &UnitName) -> impl Iterator<Item = &RelationId> {
        self.derived.scopes_of.get(unit)
    }

    /// In how many scopes a unit is.
    pub fn scope_count(&self, unit: &UnitName) -> usize {
        self.derived.scopes_of.len(unit)
    }

    /// A bag.
    pub fn bag(&self, key: &BagKey) -> Option<&Arc<Bag>> {
        self.tables.bags.find(key)
    }

    /// All bags of a relation, those of former members included.
    pub fn bags(&self, relation: &RelationId) -> impl Iterator<Item = &Arc<Bag>> {
        self.tables.bags.of(relation)
    }

    /// The bags that stay readable for a unit that shares its container with their owners.
    pub(crate) fn bags_contained_by(&self, principal: &UnitName) -> impl Iterator<Item = &BagKey> {
        self.derived.contained_bags.get(principal)
    }

    /// How many bags a relation has.
    pub fn bag_count(&self, relation: &RelationId) -> usize {
        self.tables.bags.count(relation)
    }

    /// Relations that have bags, those that are gone included.
    pub fn relations_with_bags(&self) -> impl Iterator<Item = &RelationId> {
        self.tables.bags.keys()
    }

    /// What a charm stored under one key for its unit.
    pub fn state_entry(&self, key: &StateKey) -> Option<&Arc<StateEntry>> {
        self.tables.states.find(key)
    }

    /// What a charm stored for its unit, by key.
    pub fn state_of(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<StateEntry>> {
        self.tables.states.of(unit)
    }

    /// Units whose charms stored something.
    pub fn units_with_state(&self) -> impl Iterator<Item = &UnitName> {
        self.tables.states.keys()
    }

    /// The events that a unit waits for; none: it never asked for any.
    pub fn events_of(&self, unit: &UnitName) -> Option<&Arc<PendingEvents>> {
        self.tables.events.get(unit)
    }

    /// Units that asked for events.
    pub fn units_with_events(&self) -> impl Iterator<Item = &UnitName> {
        self.tables.events.keys()
    }

    /// A request to run an action.
    pub fn operation(&self, id: &ActionOperationId) -> Option<&Arc<ActionOperation>> {
        self.tables.operations.get(id)
    }

    /// The requests to run actions, by number.
    pub fn operations(&self) -> impl DoubleEndedIterator<Item = &Arc<ActionOperation>> {
        self.tables.operations.values()
    }

    /// A task.
    pub fn task(&self, id: &TaskId) -> Option<&Arc<Task>> {
        self.tables.tasks.get(id)
    }

    /// All tasks that are kept, by number.
    pub fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tables.tasks.values()
    }

    /// A unit's tasks that have not ended, by number.
    pub fn open_tasks(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<Task>> {
        self.derived.open_tasks.get(unit).filter_map(|id| self.tables.tasks.get(id))
    }

    /// How many of a unit's tasks have not ended.
    pub fn open_task_count(&self, unit: &UnitName) -> usize {
        self.derived.open_tasks.len(unit)
    }

    /// Tasks that have ended, the first to end first.
    pub(crate) fn ended_tasks(&self) -> impl Iterator<Item = &(Timestamp, TaskId)> {
        self.derived.ended_tasks.iter()
    }

    /// Bytes that tasks that have ended take in memory.
    pub(crate) fn ended_memory(&self) -> u64 {
        self.derived.ended_memory.0
    }

    /// Bytes of the messages and results of tasks that have ended, and of what they take in memory.
    pub(crate) fn ended_bytes(&self) -> u64 {
        self.derived.ended_records.0.saturating_add(self.derived.ended_memory.0)
    }

    /// An instance of storage.
    pub fn storage(&self, id: &StorageId) -> Option<&Arc<Storage>> {
        self.tables.storages.get(id)
    }

    /// All storage that the model knows of, by id.
    pub fn storages(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.tables.storages.values().filter(|storage| !storage.forgotten)
    }

    /// Storage that only its agent has still to hear of, by id.
    pub fn forgotten_storages(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.tables.storages.values().filter(|storage| storage.forgotten)
    }

    /// The storage that a unit has, by id.
    pub fn storages_of(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<Storage>> {
        self.derived.storages_of.get(unit).filter_map(|id| self.tables.storages.get(id))
    }

    /// The storage that lies on an agent's disk, by id.
    pub fn storages_at(&self, agent: &AgentName) -> impl Iterator<Item = &Arc<Storage>> {
        self.derived.storages_at.get(agent).filter_map(|id| self.tables.storages.get(id))
    }

    /// What is still to be done, in the order in which it was noted.
    pub fn work(&self) -> impl Iterator<Item = &Arc<WorkItem>> {
        self.tables.work.values()
    }

    /// What is still to be done, in the order in which it is due: at once, then by time.
    pub(crate) fn work_by_due(&self) -> impl Iterator<Item = &Arc<WorkItem>> {
        self.derived.work_due.iter().filter_map(|(_, id)| self.tables.work.get(id))
    }

    /// One thing that is still to be done.
    pub fn work_item(&self, id: &WorkId) -> Option<&Arc<WorkItem>> {
        self.tables.work.get(id)
    }

    /// Whether the model is gone, but for files that agents have still to delete.
    pub fn is_remains(&self) -> bool {
        self.model.life == Life::Dead
    }

    /// Whether the controller has something to do here.
    pub(crate) fn has_work(&self) -> bool {
        !self.tables.work.is_empty()
            || !self.derived.unplaced.is_empty()
            || !self.derived.ended_tasks.is_empty()
            || !self.derived.secrets_due.is_empty()
            || self.model.life != Life::Alive
    }
}
