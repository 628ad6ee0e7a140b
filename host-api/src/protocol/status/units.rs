//! The units that stand in a status, wherever they stand: those of principals, and the subordinates below them.

use super::{ApplicationStatus, FullStatus, UnitStatus};

/// A unit in a status.
#[derive(Debug, Clone, Copy)]
pub struct PlacedUnit<'a> {
    /// `APPLICATION/NUMBER`.
    pub name: &'a str,
    /// How it is.
    pub unit: &'a UnitStatus,
    /// Below which unit it stands, if it is a subordinate.
    pub principal: Option<(&'a str, &'a UnitStatus)>,
}

impl<'a> PlacedUnit<'a> {
    /// The name of the application that it is of.
    pub fn application(&self) -> &'a str {
        application_of(self.name)
    }
}

impl FullStatus {
    /// All units of the model, each before its subordinates.
    pub fn units(&self) -> impl Iterator<Item = PlacedUnit<'_>> {
        self.applications.values().flat_map(ApplicationStatus::all_units)
    }
}

impl ApplicationStatus {
    /// Its units, each before its subordinates, which are of other applications.
    pub fn all_units(&self) -> impl Iterator<Item = PlacedUnit<'_>> {
        self.units.iter().flat_map(|(name, unit)| {
            let principal = Some((name.as_str(), unit));
            let below = unit.subordinates.iter();
            std::iter::once(PlacedUnit { name, unit, principal: None })
                .chain(below.map(move |(name, unit)| PlacedUnit { name, unit, principal }))
        })
    }
}

/// The application in a unit's name.
pub fn application_of(unit: &str) -> &str {
    unit.split_once('/').map_or(unit, |(application, _)| application)
}
