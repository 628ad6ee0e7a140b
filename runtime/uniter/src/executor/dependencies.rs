//! The dependencies of units' decisions, and the changes of frames. A frame wakes only the units that depend on its
//! changes.
//!
//! [`of`] must list everything that the resolver's rules read. The laboratory checks this: it resolves each unit that a
//! frame did not touch, and fails if the decision has changed.

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, Digest, MachineId, RelationId, UnitName,
    event::Event,
    pending::Condition,
    record::Operation,
    relation::BagOwner,
    secret::{SecretId, SecretOwner},
    view::{
        ApplicationView, Frame, MachineView, RelationView, SecretView, UnitView, View, ViewEntity, ViewKey,
    },
};

/// A change of the dependencies of a unit's decision, beside the unit itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyChange {
    /// The dependencies that the decision loses.
    pub lost: Vec<Dependency>,
    /// The dependencies that the decision gains.
    pub gained: Vec<Dependency>,
}

/// An input of units' decisions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// All inputs.
    Everything,
    /// The model's own settings.
    Model,
    /// A unit: its record, life, events, tasks, storage and secrets.
    Unit(UnitName),
    /// An application: its life, charm, settings and leader.
    Application(ApplicationName),
    /// The relations of an application, without their members.
    RelationsOf(ApplicationName),
    /// The secrets of an application.
    SecretsOf(ApplicationName),
    /// The metadata of a charm.
    Charm(Digest),
    /// The boot id and addresses of a machine.
    Machine(MachineId),
    /// The units of an application in a relation, and its bags there.
    Members(RelationId, ApplicationName),
    /// A secret.
    Secret(SecretId),
}

/// Returns the dependencies of a unit's decision, beside the unit itself.
pub(super) fn of(view: &View, name: &UnitName) -> BTreeSet<Dependency> {
    let own = name.application();
    let mut depends = BTreeSet::from([
        Dependency::Model,
        Dependency::Application(own.clone()),
        Dependency::RelationsOf(own.clone()),
    ]);
    let Some(unit) = view.units.get(name) else { return depends };
    let record = &unit.record;
    depends.insert(Dependency::Machine(unit.machine));
    depends.extend(record.charm.map(|charm| Dependency::Charm(charm.digest)));
    if let Some(application) = view.applications.get(own) {
        depends.insert(Dependency::Charm(application.charm.digest));
        if application.leader.as_ref().is_some_and(|leader| leader.unit == *name) {
            depends.insert(Dependency::SecretsOf(own.clone()));
        }
    }
    for (relation, told) in &record.relations {
        depends.insert(Dependency::Members(*relation, told.remote_application.clone()));
    }
    depends.extend(company(view, unit).map(|unit| Dependency::Unit(unit.clone())));
    if let Operation::Hook { event, .. } = &record.operation {
        depends.extend(event.secret().map(|context| Dependency::Secret(context.id)));
        depends.extend(relation_of(event));
    }
    let pending = view.events.get(name).into_iter().flat_map(|found| found.events.values());
    for condition in pending.flat_map(|event| &event.conditions) {
        if let Condition::Relation { relation, owner, .. } = condition {
            depends.insert(Dependency::Members(*relation, owner_application(owner)));
        }
    }
    depends
}

/// Returns the units in the same container, as far as the view shows them.
fn company<'a>(view: &'a View, unit: &'a UnitView) -> impl Iterator<Item = &'a UnitName> {
    let principal = unit.principal.as_ref().and_then(|principal| view.units.get(principal));
    let siblings = principal.into_iter().flat_map(|principal| &principal.subordinates);
    unit.principal.iter().chain(&unit.subordinates).chain(siblings).filter(|other| **other != unit.name)
}

fn relation_of(event: &Event) -> Option<Dependency> {
    let context = event.relation()?;
    Some(Dependency::Members(context.relation, context.remote_application.clone()))
}

fn owner_application(owner: &BagOwner) -> ApplicationName {
    match owner {
        BagOwner::Unit(unit) => unit.application().clone(),
        BagOwner::Application(application) => application.clone(),
    }
}

/// The changes of a frame, as inputs of decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedDependencies {
    /// The whole view was replaced.
    All,
    /// These inputs changed.
    These(BTreeSet<Dependency>),
}

impl ChangedDependencies {
    /// Returns the changes that a frame makes in a view.
    pub fn by(before: &View, frame: &Frame) -> Self {
        if frame.from.is_none() {
            return Self::All;
        }
        let mut changed = BTreeSet::new();
        for entity in &frame.puts {
            put(before, entity, &mut changed);
        }
        for key in &frame.deletes {
            deleted(before, key, &mut changed);
        }
        Self::These(changed)
    }
}

fn put(before: &View, entity: &ViewEntity, changed: &mut BTreeSet<Dependency>) {
    match entity {
        ViewEntity::Model(_) => {
            changed.insert(Dependency::Model);
        }
        ViewEntity::Application(after) => {
            if before.applications.get(&after.name).is_none_or(|before| application_differs(before, after)) {
                changed.insert(Dependency::Application(after.name.clone()));
            }
        }
        ViewEntity::Charm(after) => {
            changed.insert(Dependency::Charm(after.digest));
        }
        ViewEntity::Unit(after) => {
            if before.units.get(&after.name).is_none_or(|before| unit_differs(before, after)) {
                changed.insert(Dependency::Unit(after.name.clone()));
            }
        }
        ViewEntity::Outline(after) => {
            if before.outlines.get(&after.name).is_none_or(|before| before.life != after.life) {
                changed.insert(Dependency::Unit(after.name.clone()));
            }
        }
        ViewEntity::Relation(after) => relation(before.relations.get(&after.id), Some(after), changed),
        ViewEntity::Bag(after) => {
            changed.insert(Dependency::Members(after.key.relation, owner_application(&after.key.owner)));
        }
        ViewEntity::State(_) => {}
        ViewEntity::Events(after) => {
            changed.insert(Dependency::Unit(after.unit.clone()));
        }
        ViewEntity::Secret(after) => {
            secret(after, changed);
            before.secrets.get(&after.id).into_iter().for_each(|before| secret(before, changed));
        }
        ViewEntity::Machine(after) => {
            if before.machines.get(&after.id).is_none_or(|before| machine_differs(before, after)) {
                changed.insert(Dependency::Machine(after.id));
            }
        }
        ViewEntity::Task(after) => {
            changed.insert(Dependency::Unit(after.unit.clone()));
        }
        ViewEntity::Storage(after) => {
            let before = before.storages.get(&after.id).and_then(|before| before.attachment.as_ref());
            let attachments = before.into_iter().chain(&after.attachment);
            changed.extend(attachments.map(|attachment| Dependency::Unit(attachment.unit.clone())));
        }
    }
}

fn deleted(before: &View, key: &ViewKey, changed: &mut BTreeSet<Dependency>) {
    match key {
        ViewKey::Model => {
            changed.insert(Dependency::Model);
        }
        ViewKey::Application(name) => {
            changed.insert(Dependency::Application(name.clone()));
        }
        ViewKey::Charm(digest) => {
            changed.insert(Dependency::Charm(*digest));
        }
        ViewKey::Unit(name) | ViewKey::Outline(name) | ViewKey::Events(name) => {
            changed.insert(Dependency::Unit(name.clone()));
        }
        ViewKey::Relation(id) => relation(before.relations.get(id), None, changed),
        ViewKey::Bag(key) => {
            changed.insert(Dependency::Members(key.relation, owner_application(&key.owner)));
        }
        ViewKey::State(_) => {}
        ViewKey::Secret(id) => {
            before.secrets.get(id).into_iter().for_each(|before| secret(before, changed));
        }
        ViewKey::Machine(id) => {
            changed.insert(Dependency::Machine(*id));
        }
        ViewKey::Task(id) => {
            changed.extend(before.tasks.get(id).map(|task| Dependency::Unit(task.unit.clone())));
        }
        ViewKey::Storage(id) => {
            let before = before.storages.get(id).and_then(|before| before.attachment.as_ref());
            changed.extend(before.map(|attachment| Dependency::Unit(attachment.unit.clone())));
        }
    }
}

/// Returns true if a field that decisions read has changed. The status and the exposure are for people, and destinations
/// outside for the keeper.
fn application_differs(before: &ApplicationView, after: &ApplicationView) -> bool {
    let shown = ApplicationView {
        status: before.status.clone(),
        exposed: before.exposed,
        workload_egress: before.workload_egress.clone(),
        ..after.clone()
    };
    *before != shown
}

/// Returns true if a field that decisions read has changed. The unit's own statuses are no input.
fn unit_differs(before: &UnitView, after: &UnitView) -> bool {
    let UnitView { name: _, life, machine, principal, subordinates, resolved, record, .. } = after;
    (before.life, before.machine, &before.principal, &before.subordinates, &before.resolved, &before.record)
        != (*life, *machine, principal, subordinates, resolved, record)
}

/// Returns true if a field that decisions read has changed. Open ports are no input.
fn machine_differs(before: &MachineView, after: &MachineView) -> bool {
    (&before.boot_id, &before.addresses_hash) != (&after.boot_id, &after.addresses_hash)
}

fn relation(before: Option<&RelationView>, after: Option<&RelationView>, changed: &mut BTreeSet<Dependency>) {
    let standing = |view: &RelationView| (view.endpoints.clone(), view.scope, view.life, view.suspended);
    if before.map(standing) != after.map(standing) {
        let ends = [before, after].into_iter().flatten().flat_map(|view| &view.endpoints);
        changed.extend(ends.map(|end| Dependency::RelationsOf(end.application.clone())));
    }
    let Some(id) = before.or(after).map(|view| view.id) else { return };
    let members = |application| [before, after].map(|view| view.map(|view| view.members.runs(application)));
    let applications = [before, after].into_iter().flatten().flat_map(|view| view.members.applications());
    for application in applications {
        let [before, after] = members(application);
        if before.unwrap_or_default() != after.unwrap_or_default() {
            changed.insert(Dependency::Members(id, application.clone()));
        }
    }
}

fn secret(view: &SecretView, changed: &mut BTreeSet<Dependency>) {
    changed.insert(Dependency::Secret(view.id));
    match &view.owner {
        SecretOwner::Unit(unit) => {
            changed.insert(Dependency::Unit(unit.clone()));
        }
        SecretOwner::Application(application) => {
            changed.insert(Dependency::SecretsOf(application.clone()));
        }
        SecretOwner::Model => {}
    }
    changed.extend(view.consumers.keys().map(|unit| Dependency::Unit(unit.clone())));
}

/// The units that depend on each input.
#[derive(Debug, Clone, Default)]
pub struct Dependents(BTreeSet<(Dependency, Option<UnitName>)>);

impl Dependents {
    /// Applies a change of a unit's dependencies.
    pub fn change(&mut self, unit: &UnitName, change: DependencyChange) {
        for dependency in change.lost {
            self.0.remove(&(dependency, Some(unit.clone())));
        }
        self.0.extend(change.gained.into_iter().map(|dependency| (dependency, Some(unit.clone()))));
    }

    /// Returns the units that depend on changed inputs. The driver need not manage all of them.
    pub fn of(&self, changed: &BTreeSet<Dependency>) -> BTreeSet<UnitName> {
        let mut units = BTreeSet::new();
        if changed.is_empty() {
            return units;
        }
        for dependency in changed.iter().chain([&Dependency::Everything]) {
            // A unit's decision always depends on the unit.
            if let Dependency::Unit(unit) = dependency {
                units.insert(unit.clone());
            }
            let dependents = self.0.range((dependency.clone(), None)..);
            let dependents = dependents.take_while(|(on, _)| on == dependency);
            units.extend(dependents.filter_map(|(_, unit)| unit.clone()));
        }
        units
    }

    /// Returns the number of pairs of unit and dependency.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no dependencies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
