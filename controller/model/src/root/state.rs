//! The state of one model.

use std::sync::Arc;

use imbl::OrdSet;
use periapt_host_api::{
    ActionOperationId, AgentName, ApplicationName, Digest, MachineId, RelationId, StorageId, TaskId,
    Timestamp, UnitName, UserName,
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
pub(crate) use diff::StateDifferences;

use crate::entity::{
    ActionOperation, Application, Bag, Machine, Model, ModelCharm, ModelGrant, PendingEvents, Relation,
    ReportedWorkloads, Runner, Sequence, SequenceKey, StateEntry, Storage, Task, Unit, WorkId, WorkItem,
};
use crate::migration::entity::Migration;
use derived::Derived;
use kinds::Tables;

/// All entities of one model, and the indexes derived from them.
#[derive(Debug, Clone)]
pub struct ModelState {
    model: Arc<Model>,
    /// The controller's settings for all models.
    defaults: Arc<ModelSettings>,
    /// The effective configuration, derived from the model's settings and the defaults.
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

    /// Returns the model itself.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the model's configuration. The model's own setting comes first, then the controller's, then the
    /// default.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns the controller's settings for all models.
    pub fn defaults(&self) -> &ModelSettings {
        &self.defaults
    }

    /// Returns a charm that the model uses.
    pub fn charm(&self, digest: &Digest) -> Option<&ModelCharm> {
        self.tables.charms.get(digest).map(Arc::as_ref)
    }

    /// Returns the charms that the model uses.
    pub fn charms(&self) -> impl Iterator<Item = &ModelCharm> {
        self.tables.charms.values().map(Arc::as_ref)
    }

    /// Returns the next number of a sequence.
    pub fn next(&self, key: &SequenceKey) -> u64 {
        self.tables.sequences.get(key).map_or(0, |sequence| sequence.next)
    }

    /// Returns the sequences.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.tables.sequences.values().map(Arc::as_ref)
    }

    /// Returns the runner of an agent.
    pub fn runner(&self, agent: &AgentName) -> Option<&Runner> {
        self.tables.runners.get(agent).map(Arc::as_ref)
    }

    /// Returns the runners that have ever attached.
    pub fn runners(&self) -> impl Iterator<Item = &Runner> {
        self.tables.runners.values().map(Arc::as_ref)
    }

    /// Returns an application.
    pub fn application(&self, name: &ApplicationName) -> Option<&Arc<Application>> {
        self.tables.applications.get(name)
    }

    /// Returns the applications, by name.
    pub fn applications(&self) -> impl Iterator<Item = &Arc<Application>> {
        self.tables.applications.values()
    }

    /// Returns a machine.
    pub fn machine(&self, id: &MachineId) -> Option<&Arc<Machine>> {
        self.tables.machines.get(id)
    }

    /// Returns the machines, by number.
    pub fn machines(&self) -> impl Iterator<Item = &Arc<Machine>> {
        self.tables.machines.values()
    }

    /// Returns the machines that an agent hosts.
    pub fn machines_of(&self, agent: &AgentName) -> impl Iterator<Item = &Arc<Machine>> {
        self.derived.machines_of.get(agent).filter_map(|id| self.tables.machines.get(id))
    }

    /// Returns a unit.
    pub fn unit(&self, name: &UnitName) -> Option<&Arc<Unit>> {
        self.tables.units.get(name)
    }

    /// Returns all units, by name.
    pub fn units(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.tables.units.values()
    }

    /// Returns the number of units.
    pub fn unit_count(&self) -> usize {
        self.tables.units.len()
    }

    /// Returns the number of units of each application that has some, those with numbers alone included.
    pub(crate) fn unit_counts(&self) -> impl Iterator<Item = (&ApplicationName, u64)> {
        self.derived.unit_counts.0.iter().map(|(application, count)| (application, *count))
    }

    /// Returns the units of an application, by number.
    pub fn units_of(&self, application: &ApplicationName) -> impl Iterator<Item = &Arc<Unit>> {
        let first = UnitName::new(application.clone(), 0);
        let last = UnitName::new(application.clone(), u32::MAX);
        self.tables.units.range(first..=last).map(|(_, unit)| unit)
    }

    /// Returns the units of an application after `unit`, by number, or all of them if `unit` is none.
    pub(crate) fn units_of_behind(
        &self,
        application: &ApplicationName,
        unit: Option<&UnitName>,
    ) -> impl Iterator<Item = &Arc<Unit>> {
        let first = unit.map_or(0, |unit| unit.number().saturating_add(1));
        let last = UnitName::new(application.clone(), u32::MAX);
        self.tables.units.range(UnitName::new(application.clone(), first)..=last).map(|(_, unit)| unit)
    }

    /// Returns the units on a machine, subordinates included.
    pub fn units_on(&self, machine: &MachineId) -> impl Iterator<Item = &Arc<Unit>> {
        self.derived.units_on.get(machine).filter_map(|name| self.tables.units.get(name))
    }

    /// Returns the number of units on a machine.
    pub fn unit_count_on(&self, machine: &MachineId) -> usize {
        self.derived.units_on.len(machine)
    }

    /// Returns the subordinates of a unit that are not removed yet.
    pub fn subordinates_of(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<Unit>> {
        self.derived.subordinates_of.get(unit).filter_map(|name| self.tables.units.get(name))
    }

    /// Returns the units that have no machine yet.
    pub fn unplaced(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.derived.unplaced.iter().filter_map(|name| self.tables.units.get(name))
    }

    /// Returns the names of the units that have no machine yet, as a copy that later writes do not change.
    pub(crate) fn unplaced_names(&self) -> OrdSet<UnitName> {
        self.derived.unplaced.clone()
    }

    /// Returns the agent that runs a unit.
    pub fn agent_of(&self, unit: &Unit) -> Option<&AgentName> {
        self.machine(&unit.machine?).map(|machine| &machine.agent)
    }

    /// Returns a relation, dying and dead ones included.
    pub fn relation(&self, id: &RelationId) -> Option<&Arc<Relation>> {
        self.tables.relations.get(id)
    }

    /// Returns all relations, by number.
    pub fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.tables.relations.values()
    }

    /// Returns the relations of an application, by number.
    pub fn relations_of(&self, application: &ApplicationName) -> impl Iterator<Item = &Arc<Relation>> {
        self.derived.relations_of.get(application).filter_map(|id| self.tables.relations.get(id))
    }

    /// Returns the units in a relation's scope.
    pub fn members(&self, relation: &RelationId) -> impl Iterator<Item = (&UnitName, &Membership)> {
        self.tables.members.of(relation).map(|member| (&member.unit, &member.membership))
    }

    /// Returns the number of units in a relation's scope.
    pub fn member_count(&self, relation: &RelationId) -> usize {
        self.tables.members.count(relation)
    }

    /// Returns a unit's membership in a relation's scope.
    pub fn membership(&self, relation: &RelationId, unit: &UnitName) -> Option<Membership> {
        self.tables.members.get(relation)?.get(unit).map(|member| member.membership)
    }

    /// Returns the relations in whose scope a unit is.
    pub fn scopes_of(&self, unit: &UnitName) -> impl Iterator<Item = &RelationId> {
        self.derived.scopes_of.get(unit)
    }

    /// Returns the number of scopes that a unit is in.
    pub fn scope_count(&self, unit: &UnitName) -> usize {
        self.derived.scopes_of.len(unit)
    }

    /// Returns a bag.
    pub fn bag(&self, key: &BagKey) -> Option<&Arc<Bag>> {
        self.tables.bags.find(key)
    }

    /// Returns all bags of a relation, those of former members included.
    pub fn bags(&self, relation: &RelationId) -> impl Iterator<Item = &Arc<Bag>> {
        self.tables.bags.of(relation)
    }

    /// Returns the bags of units that share a container with a principal. Units in that container can still read
    /// them.
    pub(crate) fn bags_contained_by(&self, principal: &UnitName) -> impl Iterator<Item = &BagKey> {
        self.derived.contained_bags.get(principal)
    }

    /// Returns the number of a relation's bags.
    pub fn bag_count(&self, relation: &RelationId) -> usize {
        self.tables.bags.count(relation)
    }

    /// Returns the relations that have bags, removed relations included.
    pub fn relations_with_bags(&self) -> impl Iterator<Item = &RelationId> {
        self.tables.bags.keys()
    }

    /// Returns the entry that a charm stored under one key for its unit.
    pub fn state_entry(&self, key: &StateKey) -> Option<&Arc<StateEntry>> {
        self.tables.states.find(key)
    }

    /// Returns all entries that a charm stored for its unit, by key.
    pub fn state_of(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<StateEntry>> {
        self.tables.states.of(unit)
    }

    /// Returns the units with stored state.
    pub fn units_with_state(&self) -> impl Iterator<Item = &UnitName> {
        self.tables.states.keys()
    }

    /// Returns the events that a unit waits for, or none if it never scheduled one.
    pub fn events_of(&self, unit: &UnitName) -> Option<&Arc<PendingEvents>> {
        self.tables.events.get(unit)
    }

    /// Returns the state of a unit's workloads; none if no agent has reported any.
    pub fn workloads_of(&self, unit: &UnitName) -> Option<&Arc<ReportedWorkloads>> {
        self.tables.workloads.get(unit)
    }

    /// Returns the units that have scheduled events.
    pub fn units_with_events(&self) -> impl Iterator<Item = &UnitName> {
        self.tables.events.keys()
    }

    /// Returns a request to run an action.
    pub fn operation(&self, id: &ActionOperationId) -> Option<&Arc<ActionOperation>> {
        self.tables.operations.get(id)
    }

    /// Returns the requests to run actions, by number.
    pub fn operations(&self) -> impl DoubleEndedIterator<Item = &Arc<ActionOperation>> {
        self.tables.operations.values()
    }

    /// Returns a task.
    pub fn task(&self, id: &TaskId) -> Option<&Arc<Task>> {
        self.tables.tasks.get(id)
    }

    /// Returns all tasks that are kept, by number.
    pub fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tables.tasks.values()
    }

    /// Returns a unit's tasks that have not completed, by number.
    pub fn open_tasks(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<Task>> {
        self.derived.open_tasks.get(unit).filter_map(|id| self.tables.tasks.get(id))
    }

    /// Returns the number of a unit's tasks that have not completed.
    pub fn open_task_count(&self, unit: &UnitName) -> usize {
        self.derived.open_tasks.len(unit)
    }

    /// Returns the completed tasks, in the order of their completion.
    pub(crate) fn ended_tasks(&self) -> impl Iterator<Item = &(Timestamp, TaskId)> {
        self.derived.ended_tasks.iter()
    }

    /// Returns the bytes of memory that completed tasks take.
    pub(crate) fn ended_memory(&self) -> u64 {
        self.derived.ended_memory.0
    }

    /// Returns the bytes that completed tasks take in memory, plus those of their messages and results.
    pub(crate) fn ended_bytes(&self) -> u64 {
        self.derived.ended_records.0.saturating_add(self.derived.ended_memory.0)
    }

    /// Returns the access that was granted to a user. It may be of an earlier user of the same name.
    pub(crate) fn grant(&self, user: &UserName) -> Option<&Arc<ModelGrant>> {
        self.tables.grants.get(user)
    }

    /// Returns all grants, by user.
    pub(crate) fn grants(&self) -> impl Iterator<Item = &Arc<ModelGrant>> {
        self.tables.grants.values()
    }

    /// Returns the users whose grant was changed or revoked from this state to a later one. Shared parts of the maps are
    /// skipped, so the cost depends on the size of the difference.
    pub fn users_who_lost(&self, newer: &Self) -> Vec<UserName> {
        let changes = self.tables.grants.changes(&newer.tables.grants);
        changes.iter().filter_map(|change| Some(change.old?.user.clone())).collect()
    }

    /// Returns the users who were granted access, by name.
    pub fn granted_users(&self) -> impl Iterator<Item = &UserName> {
        self.tables.grants.keys()
    }

    /// Returns a storage instance.
    pub fn storage(&self, id: &StorageId) -> Option<&Arc<Storage>> {
        self.tables.storages.get(id)
    }

    /// Returns all storage instances of the model that are not forgotten, by id.
    pub fn storages(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.tables.storages.values().filter(|storage| !storage.forgotten)
    }

    /// Returns the forgotten storage instances, by id. Their agents have not been told yet.
    pub fn forgotten_storages(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.tables.storages.values().filter(|storage| storage.forgotten)
    }

    /// Returns the storage instances of a unit, by id.
    pub fn storages_of(&self, unit: &UnitName) -> impl Iterator<Item = &Arc<Storage>> {
        self.derived.storages_of.get(unit).filter_map(|id| self.tables.storages.get(id))
    }

    /// Returns the storage instances on an agent's disk, by id.
    pub fn storages_at(&self, agent: &AgentName) -> impl Iterator<Item = &Arc<Storage>> {
        self.derived.storages_at.get(agent).filter_map(|id| self.tables.storages.get(id))
    }

    /// Returns the work items, in the order in which they were added.
    pub fn work(&self) -> impl Iterator<Item = &Arc<WorkItem>> {
        self.tables.work.values()
    }

    /// Returns the work items by due time. Those without one come first.
    pub(crate) fn work_by_due(&self) -> impl Iterator<Item = &Arc<WorkItem>> {
        self.derived.work_due.iter().filter_map(|(_, id)| self.tables.work.get(id))
    }

    /// Returns one work item.
    pub fn work_item(&self, id: &WorkId) -> Option<&Arc<WorkItem>> {
        self.tables.work.get(id)
    }

    /// Returns true if the model is destroyed, and only storage that agents have to delete remains.
    pub fn is_remains(&self) -> bool {
        self.model.life == Life::Dead
    }

    /// Returns true if the model does not exist for clients: it is destroyed, has moved, or has not arrived.
    pub fn is_hidden(&self) -> bool {
        self.is_remains() || self.model.migration.as_ref().is_some_and(Migration::hides)
    }

    /// Returns the state of the model's migration, if there is one.
    pub fn migration(&self) -> Option<&Migration> {
        self.model.migration.as_ref()
    }

    /// Returns true if a migration keeps the model from changes.
    pub fn is_frozen(&self) -> bool {
        self.migration().is_some_and(Migration::freezes)
    }

    /// Returns true if a migration of the model is not all over: it goes, has moved, comes, or has failed, and the other
    /// controller is yet to be told.
    pub(crate) fn is_migrating(&self) -> bool {
        self.migration().is_some_and(Migration::is_pending)
    }

    /// Returns true if the model has moved to another controller.
    pub fn has_moved(&self) -> bool {
        matches!(self.migration(), Some(Migration::Moved(_)))
    }

    /// Returns true if the model is on its way to this controller, and was not given up.
    pub fn is_coming(&self) -> bool {
        matches!(self.migration(), Some(Migration::Importing(import)) if import.given_up_at.is_none())
    }

    /// Returns the time of the next step that the model's migration needs of the controller.
    pub(crate) fn migration_due(&self) -> Option<Timestamp> {
        let migration = self.migration()?;
        match self.keys().next() {
            Some(_) => migration.due(),
            None => migration.end_due(),
        }
    }

    /// Returns true if the controller has something to do in this model.
    pub(crate) fn has_work(&self) -> bool {
        if self.is_frozen() {
            return self.migration_due().is_some();
        }
        !self.tables.work.is_empty()
            || !self.derived.unplaced.is_empty()
            || !self.derived.ended_tasks.is_empty()
            || !self.derived.secrets_due.is_empty()
            || self.model.life != Life::Alive
    }
}
