//! The units of one model on this agent, from the frames that the keeper forwards. The keeper claims leadership
//! for them.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, UnitName,
    agent::LeaseClaim,
    status::Life,
    timing::LEASE_SECONDS,
    view::{FrameLine, ViewEntity, ViewKey},
};

/// The units of one model on this agent, with the leaders of their applications.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LocalUnits {
    units: BTreeMap<UnitName, Life>,
    leaders: BTreeMap<ApplicationName, UnitName>,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<(Box<LocalUnits>, Urgency)>,
}

/// The urgency of the claims that a frame causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// The claims can wait for the next renewal.
    Renew,
    /// A new unit, or an application without a leader, needs a claim now.
    Claim,
}

impl LocalUnits {
    /// Records the changes of a frame's line.
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
        // No claims come from an incomplete list of units.
        self.coming = Some((coming, urgency));
        Urgency::Renew
    }

    /// Records a line's changes. Units in `before` count as known.
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

    /// Returns the units.
    pub(crate) fn units(&self) -> BTreeSet<UnitName> {
        self.units.keys().cloned().collect()
    }

    /// Returns true if a unit is on this agent.
    pub(crate) fn holds(&self, unit: &UnitName) -> bool {
        self.units.contains_key(unit)
    }

    /// Returns the claims that must not wait for the next renewal: those of units that are not in `claimed`, and
    /// those for applications without a leader.
    pub(crate) fn due_at_once(&self, claimed: &BTreeSet<UnitName>) -> Vec<LeaseClaim> {
        let mut claims = self.claims();
        claims
            .retain(|claim| !claimed.contains(&claim.unit) || !self.leaders.contains_key(&claim.application));
        claims
    }

    /// Returns the claims and renewals of all units: every living unit, and a dying unit only if it leads (U-41).
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
        let mut local_units = LocalUnits::default();
        local_units.observe(&frame(None, 5, vec![unit("app/0", Life::Alive)]));
        let mut first = frame(None, 9, vec![unit("app/1", Life::Alive)]);
        first.line = Some(LineNumber { number: 1, of: 2 });
        let last = FrameLine {
            line: Some(LineNumber { number: 2, of: 2 }),
            ..frame(None, 9, vec![unit("app/0", Life::Dying)])
        };
        assert_eq!(local_units.observe(&first), Urgency::Renew);
        assert_eq!(local_units.units(), BTreeSet::from(["app/0".parse().unwrap()]));
        assert_eq!(local_units.observe(&last), Urgency::Claim, "the first line brought a unit");
        assert_eq!(local_units.units().len(), 2);
        assert_eq!(local_units.observe(&first), Urgency::Renew);
        // The frame was interrupted, and comes again.
        assert_eq!(local_units.observe(&first), Urgency::Renew);
        assert_eq!(local_units.observe(&last), Urgency::Renew, "all are known");
    }
}
