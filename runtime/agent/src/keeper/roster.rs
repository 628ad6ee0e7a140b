//! Which units of one model are here, as the frames that pass by tell: for whom leadership is claimed.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, UnitName,
    agent::LeaseClaim,
    status::Life,
    view::{Frame, ViewEntity, ViewKey},
};

/// For how long leadership is asked, in seconds (`hook-model.md` 7.4).
pub(crate) const LEASE_SECONDS: u32 = 60;

/// The units of one model on this agent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Roster {
    units: BTreeMap<UnitName, Life>,
    leaders: BTreeMap<ApplicationName, UnitName>,
}

/// Whether a frame calls for claims before the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A unit is new, or an application without a leader.
    Claim,
    /// Renewals do.
    Renew,
}

impl Roster {
    /// Takes note of what a frame tells.
    pub(crate) fn observe(&mut self, frame: &Frame) -> Urgency {
        let mut urgency = Urgency::Renew;
        let before = if frame.from.is_none() { std::mem::take(self) } else { Self::default() };
        for key in &frame.deletes {
            match key {
                ViewKey::Unit(unit) => {
                    self.units.remove(unit);
                }
                ViewKey::Application(application) => {
                    self.leaders.remove(application);
                }
                _ => {}
            }
        }
        for entity in &frame.puts {
            match entity {
                ViewEntity::Unit(unit) => {
                    let known = before.units.contains_key(&unit.name);
                    if self.units.insert(unit.name.clone(), unit.life).is_none() && !known {
                        urgency = Urgency::Claim;
                    }
                }
                ViewEntity::Application(application) => match &application.leader {
                    Some(leader) => {
                        self.leaders.insert(application.name.clone(), leader.unit.clone());
                    }
                    None => {
                        self.leaders.remove(&application.name);
                        urgency = Urgency::Claim;
                    }
                },
                _ => {}
            }
        }
        urgency
    }

    /// The units that are here.
    pub(crate) fn units(&self) -> BTreeSet<UnitName> {
        self.units.keys().cloned().collect()
    }

    /// Whether a unit is here.
    pub(crate) fn holds(&self, unit: &UnitName) -> bool {
        self.units.contains_key(unit)
    }

    /// For whom leadership is claimed or renewed: every unit that is alive, and one that is dying only if it
    /// leads (U-41).
    pub(crate) fn claims(&self) -> Vec<LeaseClaim> {
        self.units
            .iter()
            .filter(|(unit, life)| match life {
                Life::Alive => true,
                Life::Dying => self.leaders.get(unit.application()) == Some(unit),
                Life::Dead => false,
            })
            .map(|(unit, _)| LeaseClaim {
                unit: unit.clone(),
                application: unit.application().clone(),
                seconds: LEASE_SECONDS,
            })
            .collect()
    }
}
