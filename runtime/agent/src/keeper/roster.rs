//! Which units of one model are here, as the frames that pass by tell: for whom leadership is claimed.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, UnitName,
    agent::LeaseClaim,
    status::Life,
    timing::LEASE_SECONDS,
    view::{FrameLine, ViewEntity, ViewKey},
};

/// The units of one model on this agent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Roster {
    units: BTreeMap<UnitName, Life>,
    leaders: BTreeMap<ApplicationName, UnitName>,
    /// What is to replace it, while lines of the replacement are still to come.
    coming: Option<(Box<Roster>, Urgency)>,
}

/// Whether a frame calls for claims before the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Renewals do.
    Renew,
    /// A unit is new, or an application without a leader.
    Claim,
}

impl Roster {
    /// Takes note of what a line of a frame tells.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> Urgency {
        let coming = self.coming.take();
        if line.from.is_some() {
            return self.note(line, &BTreeMap::new());
        }
        let begun = coming.filter(|_| !line.is_first());
        let (mut coming, before) = begun.unwrap_or_else(|| (Box::default(), Urgency::Renew));
        let urgency = coming.note(line, &self.units).max(before);
        if line.is_last() {
            *self = *coming;
            return urgency;
        }
        // Nobody is claimed for by half a roster.
        self.coming = Some((coming, urgency));
        Urgency::Renew
    }

    /// Takes note beside units that were known before.
    fn note(&mut self, line: &FrameLine, before: &BTreeMap<UnitName, Life>) -> Urgency {
        let mut urgency = Urgency::Renew;
        for key in &line.deletes {
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
        for entity in &line.puts {
            match entity {
                ViewEntity::Unit(unit) => {
                    let known = before.contains_key(&unit.name);
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

    /// The claims that do not wait for the next renewal: for units that are not among `claimed`, and for units of
    /// applications that nobody leads.
    pub(crate) fn due_at_once(&self, claimed: &BTreeSet<UnitName>) -> Vec<LeaseClaim> {
        let mut claims = self.claims();
        claims
            .retain(|claim| !claimed.contains(&claim.unit) || !self.leaders.contains_key(&claim.application));
        claims
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

#[cfg(test)]
mod tests {
    use periapt_host_api::view::LineNumber;

    use super::*;
    use crate::keeper::tests::fake::{frame, unit};

    #[test]
    fn a_replacement_in_lines_counts_once_it_is_whole() {
        let mut roster = Roster::default();
        roster.observe(&frame(None, 5, vec![unit("app/0", Life::Alive)]));
        let mut first = frame(None, 9, vec![unit("app/1", Life::Alive)]);
        first.line = Some(LineNumber { number: 1, of: 2 });
        let last = FrameLine {
            line: Some(LineNumber { number: 2, of: 2 }),
            ..frame(None, 9, vec![unit("app/0", Life::Dying)])
        };
        assert_eq!(roster.observe(&first), Urgency::Renew);
        assert_eq!(roster.units(), BTreeSet::from(["app/0".parse().unwrap()]));
        assert_eq!(roster.observe(&last), Urgency::Claim, "the first line brought a unit");
        assert_eq!(roster.units().len(), 2);
        assert_eq!(roster.observe(&first), Urgency::Renew);
        // It broke off, and comes again.
        assert_eq!(roster.observe(&first), Urgency::Renew);
        assert_eq!(roster.observe(&last), Urgency::Renew, "all are known");
    }
}
