//! The kinds of entities that queries are about, and their fields.

use std::fmt;

/// The kind of the entities that a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum EntityKind {
    Model,
    Application,
    Unit,
    Machine,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text,
    Number,
    Truth,
    Entity(EntityKind),
    Entities(EntityKind),
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "a model",
            Self::Application => "an application",
            Self::Unit => "a unit",
            Self::Machine => "a machine",
        })
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Number => f.write_str("a number"),
            Self::Truth => f.write_str("a boolean"),
            Self::Entity(kind) => kind.fmt(f),
            Self::Entities(_) => f.write_str("several entities"),
        }
    }
}

impl EntityKind {
    /// Returns the name of its collections.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Application => "applications",
            Self::Unit => "units",
            Self::Machine => "machines",
        }
    }

    /// Returns its fields with their kinds.
    pub(super) fn fields(self) -> &'static [(&'static str, ValueKind)] {
        const UNITS: (&str, ValueKind) = ("units", ValueKind::Entities(EntityKind::Unit));
        const MACHINES: (&str, ValueKind) = ("machines", ValueKind::Entities(EntityKind::Machine));
        match self {
            Self::Model => &[
                ("name", ValueKind::Text),
                ("life", ValueKind::Text),
                ("is-controller", ValueKind::Truth),
                ("status", ValueKind::Text),
                ("applications", ValueKind::Entities(Self::Application)),
                MACHINES,
                UNITS,
            ],
            Self::Application => &[
                ("name", ValueKind::Text),
                ("life", ValueKind::Text),
                ("exposed", ValueKind::Truth),
                ("charm-url", ValueKind::Text),
                ("min-units", ValueKind::Number),
                ("subordinate", ValueKind::Truth),
                ("status", ValueKind::Text),
                ("workload-version", ValueKind::Text),
                MACHINES,
                UNITS,
            ],
            Self::Unit => &[
                ("name", ValueKind::Text),
                ("application", ValueKind::Text),
                ("base", ValueKind::Text),
                ("charm-url", ValueKind::Text),
                ("life", ValueKind::Text),
                ("public-address", ValueKind::Text),
                ("private-address", ValueKind::Text),
                ("machine-id", ValueKind::Text),
                ("principal", ValueKind::Text),
                ("subordinate", ValueKind::Truth),
                ("workload-status", ValueKind::Text),
                ("workload-message", ValueKind::Text),
                ("agent-status", ValueKind::Text),
                MACHINES,
            ],
            Self::Machine => &[
                ("id", ValueKind::Text),
                ("life", ValueKind::Text),
                ("status", ValueKind::Text),
                ("agent-status", ValueKind::Text),
                ("instance-status", ValueKind::Text),
                ("base", ValueKind::Text),
                ("container-type", ValueKind::Text),
            ],
        }
    }

    pub(super) fn kind_of(self, field: &str) -> Option<ValueKind> {
        self.fields().iter().find(|(name, _)| *name == field).map(|(_, kind)| *kind)
    }
}
