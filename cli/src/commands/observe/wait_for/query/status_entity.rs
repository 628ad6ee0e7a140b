//! The entities of queries: a model and its members, with Juju's field names.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeSet};

use periapt_host_api::status::{
    ApplicationStatus, FullStatus, MachineStatus, PlacedUnit, UnitStatus, application_of,
};

use super::entity_kind::EntityKind;

/// The value of a field or of an expression.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Truth(bool),
    Entity(StatusEntity<'a>),
    Entities(Vec<StatusEntity<'a>>),
}

impl<'a> Value<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn nothing() -> Self {
        Self::Truth(false)
    }

    /// Returns true if it counts as a reached goal: true, a number of at least 1, a string or
    /// collection that is not empty.
    pub(super) fn is_something(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number >= 1.0,
            Self::Truth(truth) => *truth,
            Self::Entity(_) => true,
            Self::Entities(entities) => !entities.is_empty(),
        }
    }

    pub(super) fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            (Self::Number(one), Self::Number(other)) => one.partial_cmp(other),
            (Self::Truth(one), Self::Truth(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }
}

/// One entity in a status.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct StatusEntity<'a> {
    status: &'a FullStatus,
    name: &'a str,
    entity: EntityRef<'a>,
}

#[derive(Debug, Clone, Copy)]
enum EntityRef<'a> {
    Model,
    Application(&'a ApplicationStatus),
    Unit {
        unit: &'a UnitStatus,
        /// The principal, for a subordinate.
        principal: Option<(&'a str, &'a UnitStatus)>,
    },
    Machine(&'a MachineStatus),
}

impl<'a> StatusEntity<'a> {
    pub(in super::super) fn model(status: &'a FullStatus) -> Self {
        Self { status, name: &status.model.name, entity: EntityRef::Model }
    }

    pub(in super::super) fn application(status: &'a FullStatus, name: &str) -> Option<Self> {
        let (name, application) = status.applications.get_key_value(name)?;
        Some(Self { status, name, entity: EntityRef::Application(application) })
    }

    pub(in super::super) fn unit(status: &'a FullStatus, name: &str) -> Option<Self> {
        units(status).find(|unit| unit.name == name)
    }

    pub(in super::super) fn machine(status: &'a FullStatus, name: &str) -> Option<Self> {
        let (name, machine) = status.machines.get_key_value(name)?;
        Some(Self { status, name, entity: EntityRef::Machine(machine) })
    }

    pub(in super::super) fn kind(&self) -> EntityKind {
        match self.entity {
            EntityRef::Model => EntityKind::Model,
            EntityRef::Application(_) => EntityKind::Application,
            EntityRef::Unit { .. } => EntityKind::Unit,
            EntityRef::Machine(_) => EntityKind::Machine,
        }
    }

    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    /// Returns `alive`, `dying` or `dead`.
    pub(in super::super) fn life(&self) -> &'a str {
        let life = match self.entity {
            EntityRef::Model if self.status.model.model_status.current == "destroying" => "dying",
            EntityRef::Model => "",
            EntityRef::Application(application) => &application.life,
            EntityRef::Unit { unit, .. } => &unit.life,
            EntityRef::Machine(machine) => &machine.life,
        };
        if life.is_empty() { "alive" } else { life }
    }

    /// Returns a field's value; nothing for an unknown field.
    pub(super) fn field(&self, field: &str) -> Value<'a> {
        match (field, self.entity) {
            ("name" | "id", _) => Value::text(self.name),
            ("life", _) => Value::text(self.life()),
            ("machines", _) => Value::Entities(self.machines()),
            ("units", _) => Value::Entities(self.units()),
            (_, EntityRef::Model) => self.of_model(field),
            (_, EntityRef::Application(application)) => of_application(field, application),
            (_, EntityRef::Unit { unit, principal }) => self.of_unit(field, unit, principal),
            (_, EntityRef::Machine(machine)) => of_machine(field, machine),
        }
    }

    fn of_model(&self, field: &str) -> Value<'a> {
        match field {
            "is-controller" => Value::Truth(false),
            "status" => Value::text(&self.status.model.model_status.current),
            "applications" => {
                let names = self.status.applications.keys();
                Value::Entities(names.filter_map(|name| Self::application(self.status, name)).collect())
            }
            _ => Value::nothing(),
        }
    }

    fn of_unit(
        &self,
        field: &str,
        unit: &'a UnitStatus,
        principal: Option<(&'a str, &'a UnitStatus)>,
    ) -> Value<'a> {
        let application = application_of(self.name);
        let of = self.status.applications.get(application);
        match field {
            "application" => Value::text(application),
            "base" => of.map_or_else(Value::nothing, |of| base(&of.base)),
            "charm-url" => of.map_or_else(Value::nothing, |of| Value::text(&of.charm)),
            "public-address" => Value::text(&unit.public_address),
            "private-address" => Value::text(&unit.address),
            "machine-id" => Value::text(&principal.map_or(unit, |(_, unit)| unit).machine),
            "principal" => Value::text(principal.map_or("", |(name, _)| name)),
            "subordinate" => Value::Truth(principal.is_some()),
            "workload-status" => Value::text(&unit.workload_status.current),
            "workload-message" => Value::text(&unit.workload_status.message),
            "agent-status" => Value::text(&unit.juju_status.current),
            _ => Value::nothing(),
        }
    }

    /// Returns the units of a model or an application.
    fn units(&self) -> Vec<Self> {
        let all = units(self.status);
        match self.entity {
            EntityRef::Model => all.collect(),
            EntityRef::Application(_) => all.filter(|unit| application_of(unit.name) == self.name).collect(),
            EntityRef::Unit { .. } | EntityRef::Machine(_) => Vec::new(),
        }
    }

    /// Returns the machines of a model, of a unit, or of an application's units.
    fn machines(&self) -> Vec<Self> {
        let on: BTreeSet<&str> = match self.entity {
            EntityRef::Model => self.status.machines.keys().map(String::as_str).collect(),
            EntityRef::Application(_) => self.units().iter().filter_map(Self::place).collect(),
            EntityRef::Unit { .. } => self.place().into_iter().collect(),
            EntityRef::Machine(_) => BTreeSet::new(),
        };
        on.into_iter().filter_map(|name| Self::machine(self.status, name)).collect()
    }

    /// Returns the number of a unit's machine.
    fn place(&self) -> Option<&'a str> {
        match self.entity {
            EntityRef::Unit { unit, principal } => Some(&principal.map_or(unit, |(_, unit)| unit).machine),
            _ => None,
        }
    }
}

fn of_application<'a>(field: &str, application: &'a ApplicationStatus) -> Value<'a> {
    match field {
        "exposed" => Value::Truth(application.exposed),
        "charm-url" => Value::text(&application.charm),
        // There is no option for a least number of units yet.
        "min-units" => Value::Number(0.0),
        "subordinate" => Value::Truth(!application.subordinate_to.is_empty()),
        "status" => Value::text(&application.application_status.current),
        "workload-version" => Value::text(&application.version),
        _ => Value::nothing(),
    }
}

fn of_machine<'a>(field: &str, machine: &'a MachineStatus) -> Value<'a> {
    match field {
        "status" | "agent-status" => Value::text(&machine.juju_status.current),
        "instance-status" => Value::text(&machine.machine_status.current),
        "base" => base(&machine.base),
        // There are no machines within machines.
        "container-type" => Value::text(""),
        _ => Value::nothing(),
    }
}

fn base<'a>(base: &periapt_host_api::status::Base) -> Value<'a> {
    Value::Text(format!("{}@{}", base.name, base.channel).into())
}

/// Iterates over all units of a model, subordinates too.
fn units(status: &FullStatus) -> impl Iterator<Item = StatusEntity<'_>> {
    let entity = move |PlacedUnit { name, unit, principal }| StatusEntity {
        status,
        name,
        entity: EntityRef::Unit { unit, principal },
    };
    status.units().map(entity)
}
