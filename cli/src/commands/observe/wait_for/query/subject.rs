//! The kinds of things that queries are about, and their fields.

use std::fmt;

/// The kind of a query's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Subject {
    Model,
    Application,
    Unit,
    Machine,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Truth,
    Thing(Subject),
    Things(Subject),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "a model",
            Self::Application => "an application",
            Self::Unit => "a unit",
            Self::Machine => "a machine",
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Number => f.write_str("a number"),
            Self::Truth => f.write_str("a truth"),
            Self::Thing(subject) => subject.fmt(f),
            Self::Things(_) => f.write_str("several things"),
        }
    }
}

impl Subject {
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
    pub(super) fn fields(self) -> &'static [(&'static str, Kind)] {
        const UNITS: (&str, Kind) = ("units", Kind::Things(Subject::Unit));
        const MACHINES: (&str, Kind) = ("machines", Kind::Things(Subject::Machine));
        match self {
            Self::Model => &[
                ("name", Kind::Text),
                ("life", Kind::Text),
                ("is-controller", Kind::Truth),
                ("status", Kind::Text),
                ("applications", Kind::Things(Self::Application)),
                MACHINES,
                UNITS,
            ],
            Self::Application => &[
                ("name", Kind::Text),
                ("life", Kind::Text),
                ("exposed", Kind::Truth),
                ("charm-url", Kind::Text),
                ("min-units", Kind::Number),
                ("subordinate", Kind::Truth),
                ("status", Kind::Text),
                ("workload-version", Kind::Text),
                MACHINES,
                UNITS,
            ],
            Self::Unit => &[
                ("name", Kind::Text),
                ("application", Kind::Text),
                ("base", Kind::Text),
                ("charm-url", Kind::Text),
                ("life", Kind::Text),
                ("public-address", Kind::Text),
                ("private-address", Kind::Text),
                ("machine-id", Kind::Text),
                ("principal", Kind::Text),
                ("subordinate", Kind::Truth),
                ("workload-status", Kind::Text),
                ("workload-message", Kind::Text),
                ("agent-status", Kind::Text),
                MACHINES,
            ],
            Self::Machine => &[
                ("id", Kind::Text),
                ("life", Kind::Text),
                ("status", Kind::Text),
                ("agent-status", Kind::Text),
                ("instance-status", Kind::Text),
                ("base", Kind::Text),
                ("container-type", Kind::Text),
            ],
        }
    }

    pub(super) fn kind_of(self, field: &str) -> Option<Kind> {
        self.fields().iter().find(|(name, _)| *name == field).map(|(_, kind)| *kind)
    }
}
