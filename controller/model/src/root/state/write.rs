//! Putting entities in their places, and keeping the indexes in step.

use std::sync::Arc;

use periapt_host_api::{AgentName, MachineId, settings::ModelSettings};

use super::{ModelState, hosted};
use crate::entity::{Entity, Member, Model, ModelKey, Storage, Task, Unit};

impl ModelState {
    pub(in crate::root) fn set_model(&mut self, model: Arc<Model>) {
        if model.settings != self.model.settings {
            self.config = Arc::new(model.settings.config(&self.defaults));
        }
        self.model = model;
    }

    pub(in crate::root) fn set_defaults(&mut self, defaults: Arc<ModelSettings>) {
        self.config = Arc::new(self.model.settings.config(&defaults));
        self.defaults = defaults;
    }

    /// The entity under a key.
    pub(crate) fn get(&self, key: &ModelKey) -> Option<Entity> {
        Some(match key {
            ModelKey::Model => Entity::Model(Arc::clone(&self.model)),
            ModelKey::Charm(digest) => Entity::ModelCharm(Arc::clone(self.charms.get(digest)?)),
            ModelKey::Sequence(key) => Entity::Sequence(Arc::clone(self.sequences.get(key)?)),
            ModelKey::Runner(agent) => Entity::Runner(Arc::clone(self.runners.get(agent)?)),
            ModelKey::Application(name) => Entity::Application(Arc::clone(self.applications.get(name)?)),
            ModelKey::Offer(name) => Entity::Offer(Arc::clone(self.offer(name)?)),
            ModelKey::RemoteApplication(name) => {
                Entity::RemoteApplication(Arc::clone(self.remote_application(name)?))
            }
            ModelKey::Machine(id) => Entity::Machine(Arc::clone(self.machines.get(id)?)),
            ModelKey::Unit(name) => Entity::Unit(Arc::clone(self.units.get(name)?)),
            ModelKey::Relation(id) => Entity::Relation(Arc::clone(self.relations.get(id)?)),
            ModelKey::Member(relation, unit) => Entity::from(Member {
                relation: *relation,
                unit: unit.clone(),
                membership: self.membership(relation, unit)?,
            }),
            ModelKey::Bag(key) => Entity::Bag(Arc::clone(self.bag(key)?)),
            ModelKey::State(key) => Entity::StateEntry(Arc::clone(self.state_entry(key)?)),
            ModelKey::Events(unit) => Entity::PendingEvents(Arc::clone(self.events.get(unit)?)),
            ModelKey::ActionOperation(id) => Entity::ActionOperation(Arc::clone(self.operations.get(id)?)),
            ModelKey::Task(id) => Entity::Task(Arc::clone(self.tasks.get(id)?)),
            ModelKey::Storage(id) => Entity::Storage(Arc::clone(self.storages.get(id)?)),
            ModelKey::Secret(id) => Entity::Secret(Arc::clone(self.secret(id)?)),
            ModelKey::SecretContent(id, revision) => {
                Entity::SecretContent(Arc::clone(self.secret_content(id, *revision)?))
            }
            ModelKey::SecretExpiry(id, revision) => {
                Entity::SecretExpiry(Arc::clone(self.secrets.expiry_entity(id, *revision)?))
            }
            ModelKey::SecretConsumer(id, unit) => {
                Entity::SecretConsumer(Arc::clone(self.secret_consumer(id, unit)?))
            }
            ModelKey::Work(id) => Entity::WorkItem(Arc::clone(self.work.get(id)?)),
        })
    }

    /// Puts an entity in its place or takes it away, and keeps what is derived from it in step.
    pub(crate) fn put(&mut self, key: &ModelKey, entity: Option<&Entity>) {
        match (key, entity) {
            (ModelKey::Model, Some(Entity::Model(model))) => self.set_model(Arc::clone(model)),
            (ModelKey::Charm(digest), Some(Entity::ModelCharm(charm))) => {
                self.charms.insert(*digest, Arc::clone(charm));
            }
            (ModelKey::Sequence(key), Some(Entity::Sequence(sequence))) => {
                self.sequences.insert(key.clone(), Arc::clone(sequence));
            }
            (ModelKey::Runner(agent), Some(Entity::Runner(runner))) => {
                self.runners.insert(agent.clone(), Arc::clone(runner));
            }
            (ModelKey::Application(name), Some(Entity::Application(application))) => {
                self.applications.insert(name.clone(), Arc::clone(application));
            }
            (ModelKey::Offer(name), Some(Entity::Offer(offer))) => {
                self.offers.offers.insert(name.clone(), Arc::clone(offer));
            }
            (ModelKey::RemoteApplication(name), Some(Entity::RemoteApplication(remote))) => {
                self.offers.remotes.insert(name.clone(), Arc::clone(remote));
            }
            (ModelKey::Machine(id), Some(Entity::Machine(machine))) => {
                self.forget_machine(id);
                self.machines.insert(*id, Arc::clone(machine));
                self.machines_of.insert(machine.agent.clone(), *id);
                self.count_units_on(id, hosted::Hosted::add);
            }
            (ModelKey::Unit(name), Some(Entity::Unit(unit))) => {
                if let Some(old) = self.units.insert(name.clone(), Arc::clone(unit)) {
                    if old.principal == unit.principal && hosted::counts_alike(&old, unit) {
                        return;
                    }
                    self.forget_unit(&old);
                }
                self.note_unit(unit);
            }
            (ModelKey::Relation(id), Some(Entity::Relation(relation))) => {
                // The ends of a relation never change.
                self.relations.insert(*id, Arc::clone(relation));
                self.offers.note_relation(relation);
                for end in &relation.endpoints {
                    self.relations_of.insert(end.application.clone(), *id);
                }
            }
            (ModelKey::Member(relation, unit), Some(Entity::Member(member))) => {
                self.members.entry(*relation).or_default().insert(unit.clone(), member.membership);
                self.scopes_of.insert(unit.clone(), *relation);
            }
            (ModelKey::Bag(key), Some(Entity::Bag(bag))) => {
                let bags = self.bags.entry(key.relation).or_default();
                let old = bags.insert(key.owner.clone(), Arc::clone(bag));
                let container = old.as_ref().and_then(|old| old.container.as_ref());
                if container != bag.container.as_ref() {
                    container.into_iter().for_each(|unit| self.contained_bags.remove(unit, key));
                    bag.container
                        .iter()
                        .for_each(|unit| self.contained_bags.insert(unit.clone(), key.clone()));
                }
            }
            (ModelKey::Secret(id), Some(Entity::Secret(secret))) => {
                self.secrets.put_secret(*id, Some(secret));
            }
            (ModelKey::SecretContent(id, revision), Some(Entity::SecretContent(content))) => {
                self.secrets.put_content(*id, *revision, Some(content));
            }
            (ModelKey::SecretExpiry(id, revision), Some(Entity::SecretExpiry(expiry))) => {
                self.secrets.put_expiry(*id, *revision, Some(expiry));
            }
            (ModelKey::SecretConsumer(id, unit), Some(Entity::SecretConsumer(consumer))) => {
                self.secrets.put_consumer(*id, unit, Some(consumer));
            }
            (ModelKey::State(key), Some(Entity::StateEntry(entry))) => {
                self.states.entry(key.unit.clone()).or_default().insert(key.key.clone(), Arc::clone(entry));
            }
            (ModelKey::Events(unit), Some(Entity::PendingEvents(events))) => {
                self.events.insert(unit.clone(), Arc::clone(events));
            }
            (ModelKey::ActionOperation(id), Some(Entity::ActionOperation(operation))) => {
                self.operations.insert(*id, Arc::clone(operation));
            }
            (ModelKey::Task(id), Some(Entity::Task(task))) => {
                if let Some(old) = self.tasks.insert(*id, Arc::clone(task)) {
                    self.forget_task(&old);
                }
                self.note_task(task);
            }
            (ModelKey::Storage(id), Some(Entity::Storage(storage))) => {
                if let Some(old) = self.storages.insert(id.clone(), Arc::clone(storage)) {
                    self.forget_storage(&old);
                }
                if let Some(unit) = storage.unit() {
                    self.storages_of.insert(unit.clone(), id.clone());
                }
                if let Some(agent) = &storage.agent {
                    self.storages_at.insert(agent.clone(), id.clone());
                }
            }
            (ModelKey::Work(id), Some(Entity::WorkItem(item))) => {
                if let Some(old) = self.work.insert(*id, Arc::clone(item)) {
                    self.work_due.remove(&(old.due, *id));
                }
                self.work_due.insert((item.due, *id));
            }
            (key, _) => self.delete(key),
        }
    }

    fn delete(&mut self, key: &ModelKey) {
        match key {
            // A model goes with all its state: see the root.
            ModelKey::Model => {}
            ModelKey::Charm(digest) => {
                self.charms.remove(digest);
            }
            ModelKey::Sequence(key) => {
                self.sequences.remove(key);
            }
            ModelKey::Runner(agent) => {
                self.runners.remove(agent);
            }
            ModelKey::Application(name) => {
                self.applications.remove(name);
            }
            ModelKey::Offer(name) => {
                self.offers.offers.remove(name);
            }
            ModelKey::RemoteApplication(name) => {
                self.offers.remotes.remove(name);
            }
            ModelKey::Machine(id) => {
                self.forget_machine(id);
            }
            ModelKey::Unit(name) => {
                if let Some(old) = self.units.remove(name) {
                    self.forget_unit(&old);
                }
            }
            ModelKey::Relation(id) => {
                if let Some(old) = self.relations.remove(id) {
                    self.offers.forget_relation(&old);
                    for end in &old.endpoints {
                        self.relations_of.remove(&end.application, id);
                    }
                }
            }
            ModelKey::Member(relation, unit) => {
                if let Some(members) = self.members.get_mut(relation) {
                    members.remove(unit);
                    if members.is_empty() {
                        self.members.remove(relation);
                    }
                }
                self.scopes_of.remove(unit, relation);
            }
            ModelKey::Bag(key) => {
                if let Some(bags) = self.bags.get_mut(&key.relation) {
                    let old = bags.remove(&key.owner);
                    if let Some(container) = old.as_ref().and_then(|old| old.container.as_ref()) {
                        self.contained_bags.remove(container, key);
                    }
                    if bags.is_empty() {
                        self.bags.remove(&key.relation);
                    }
                }
            }
            ModelKey::State(key) => {
                if let Some(entries) = self.states.get_mut(&key.unit) {
                    entries.remove(&key.key);
                    if entries.is_empty() {
                        self.states.remove(&key.unit);
                    }
                }
            }
            ModelKey::Events(unit) => {
                self.events.remove(unit);
            }
            ModelKey::ActionOperation(id) => {
                self.operations.remove(id);
            }
            ModelKey::Task(id) => {
                if let Some(old) = self.tasks.remove(id) {
                    self.forget_task(&old);
                }
            }
            ModelKey::Storage(id) => {
                if let Some(old) = self.storages.remove(id) {
                    self.forget_storage(&old);
                }
            }
            ModelKey::Secret(id) => self.secrets.put_secret(*id, None),
            ModelKey::SecretContent(id, revision) => self.secrets.put_content(*id, *revision, None),
            ModelKey::SecretExpiry(id, revision) => self.secrets.put_expiry(*id, *revision, None),
            ModelKey::SecretConsumer(id, unit) => self.secrets.put_consumer(*id, unit, None),
            ModelKey::Work(id) => {
                if let Some(old) = self.work.remove(id) {
                    self.work_due.remove(&(old.due, *id));
                }
            }
        }
    }

    fn note_task(&mut self, task: &Task) {
        match task.completed {
            None => self.open_tasks.insert(task.unit.clone(), task.id),
            Some(completed) => {
                self.ended_tasks.insert((completed, task.id));
                self.ended_memory = self.ended_memory.saturating_add(task.memory());
                self.ended_bytes = self.ended_bytes.saturating_add(task.record_bytes());
            }
        }
    }

    fn forget_task(&mut self, task: &Task) {
        match task.completed {
            None => self.open_tasks.remove(&task.unit, &task.id),
            Some(completed) => {
                self.ended_tasks.remove(&(completed, task.id));
                self.ended_memory = self.ended_memory.saturating_sub(task.memory());
                self.ended_bytes = self.ended_bytes.saturating_sub(task.record_bytes());
            }
        }
    }

    /// Takes a machine out of its place. Units may still be on it: they count for nobody then.
    fn forget_machine(&mut self, id: &MachineId) {
        self.count_units_on(id, hosted::Hosted::take);
        if let Some(old) = self.machines.remove(id) {
            self.machines_of.remove(&old.agent, id);
        }
    }

    /// Counts the units on a machine for its agent, or takes them out of the count.
    fn count_units_on(&mut self, id: &MachineId, count: impl Fn(&mut hosted::Hosted, &AgentName, &Unit)) {
        let Some(machine) = self.machines.get(id) else { return };
        for unit in self.units_on.get(id).filter_map(|name| self.units.get(name)) {
            count(&mut self.hosted, &machine.agent, unit);
        }
    }

    fn note_unit(&mut self, unit: &Unit) {
        match unit.machine {
            Some(machine) => {
                self.units_on.insert(machine, unit.name.clone());
                if let Some(machine) = self.machines.get(&machine) {
                    self.hosted.add(&machine.agent, unit);
                }
            }
            None => {
                self.unplaced.insert(unit.name.clone());
            }
        }
        if let Some(principal) = &unit.principal {
            self.subordinates_of.insert(principal.clone(), unit.name.clone());
        }
    }

    fn forget_storage(&mut self, storage: &Storage) {
        if let Some(unit) = storage.unit() {
            self.storages_of.remove(unit, &storage.id);
        }
        if let Some(agent) = &storage.agent {
            self.storages_at.remove(agent, &storage.id);
        }
    }

    fn forget_unit(&mut self, unit: &Unit) {
        match unit.machine {
            Some(machine) => {
                self.units_on.remove(&machine, &unit.name);
                if let Some(machine) = self.machines.get(&machine) {
                    self.hosted.take(&machine.agent, unit);
                }
            }
            None => {
                self.unplaced.remove(&unit.name);
            }
        }
        if let Some(principal) = &unit.principal {
            self.subordinates_of.remove(principal, &unit.name);
        }
    }
}
