//! The units of a status: the principals of each application, and the subordinates listed below them.

use super::{ApplicationStatus, FullStatus, UnitStatus};

/// A unit of a status, with its place.
#[derive(Debug, Clone, Copy)]
pub struct PlacedUnit<'a> {
    /// `APPLICATION/NUMBER`.
    pub name: &'a str,
    /// The unit's status.
    pub unit: &'a UnitStatus,
    /// The principal, if the unit is a subordinate.
    pub principal: Option<(&'a str, &'a UnitStatus)>,
}

impl<'a> PlacedUnit<'a> {
    /// Returns the name of the unit's application.
    pub fn application(&self) -> &'a str {
        application_of(self.name)
    }
}

impl FullStatus {
    /// Returns all units of the model, each before its subordinates.
    pub fn units(&self) -> impl Iterator<Item = PlacedUnit<'_>> {
        self.applications.values().flat_map(ApplicationStatus::all_units)
    }
}

impl ApplicationStatus {
    /// Returns the application's units, each before its subordinates, which belong to other applications.
    pub fn all_units(&self) -> impl Iterator<Item = PlacedUnit<'_>> {
        self.units.iter().flat_map(|(name, unit)| {
            let principal = Some((name.as_str(), unit));
            let below = unit.subordinates.iter();
            std::iter::once(PlacedUnit { name, unit, principal: None })
                .chain(below.map(move |(name, unit)| PlacedUnit { name, unit, principal }))
        })
    }
}

/// Returns the application's part of a unit's name.
pub fn application_of(unit: &str) -> &str {
    unit.split_once('/').map_or(unit, |(application, _)| application)
}
