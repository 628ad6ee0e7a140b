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
    /// The units that were not claimed for yet.
    unclaimed: BTreeSet<UnitName>,
    /// The applications of units that have no leader, or are not known.
    leaderless: BTreeSet<ApplicationName>,
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
            let Self { units, unclaimed, .. } = std::mem::replace(self, *coming);
            self.unclaimed.retain(|unit| !units.contains_key(unit) || unclaimed.contains(unit));
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
                    self.unclaimed.remove(unit);
                }
                ViewKey::Application(application) => {
                    self.leaders.remove(application);
                    self.leaderless.remove(application);
                    let has_units = self.units_of(application).next().is_some();
                    if has_units {
                        self.leaderless.insert(application.clone());
                    }
                }
                _ => {}
            }
        }
        for entity in &line.puts {
            match entity {
                ViewEntity::Unit(unit) => {
                    let known = before.contains_key(&unit.name);
                    if self.units.insert(unit.name.clone(), unit.life).is_none() {
                        self.unclaimed.insert(unit.name.clone());
                        let application = unit.name.application();
                        if !self.leaders.contains_key(application) {
                            self.leaderless.insert(application.clone());
                        }
                        if !known {
                            urgency = Urgency::Claim;
                        }
                    }
                }
                ViewEntity::Application(application) => match &application.leader {
                    Some(leader) => {
                        self.leaders.insert(application.name.clone(), leader.unit.clone());
                        self.leaderless.remove(&application.name);
                    }
                    None => {
                        self.leaders.remove(&application.name);
                        self.leaderless.insert(application.name.clone());
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

    fn units_of(&self, application: &ApplicationName) -> impl Iterator<Item = (&UnitName, &Life)> {
        let [first, last] = [0, u32::MAX].map(|number| UnitName::new(application.clone(), number));
        self.units.range(first..=last)
    }

    /// Returns true if a unit that was not claimed for may be now.
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.new_units().any(|(unit, life)| self.may_claim(unit, *life))
    }

    fn new_units(&self) -> impl Iterator<Item = (&UnitName, &Life)> {
        self.unclaimed.iter().filter_map(|unit| self.units.get_key_value(unit))
    }

    /// Returns the claims that must not wait for the next renewal: those of units that were not claimed for, and those for
    /// applications without a leader. Other units cost nothing.
    pub(crate) fn due_at_once(&self) -> Vec<LeaseClaim> {
        let leaderless = self.leaderless.iter().flat_map(|application| self.units_of(application));
        let units: BTreeMap<_, _> = self.new_units().chain(leaderless).collect();
        self.claims_of(units.into_iter())
    }

    /// Returns the claims and renewals of all units: every living unit, and a dying unit only if it leads (U-41).
    pub(crate) fn claims(&self) -> Vec<LeaseClaim> {
        self.claims_of(self.units.iter())
    }

    /// Records that units are claimed for.
    pub(crate) fn claimed(&mut self, claims: &[LeaseClaim]) {
        for claim in claims {
            self.unclaimed.remove(&claim.unit);
        }
    }

    fn may_claim(&self, unit: &UnitName, life: Life) -> bool {
        match life {
            Life::Alive => true,
            Life::Dying => self.leaders.get(unit.application()) == Some(unit),
            Life::Dead => false,
        }
    }

    fn claims_of<'a>(&'a self, units: impl Iterator<Item = (&'a UnitName, &'a Life)>) -> Vec<LeaseClaim> {
        let claim = |(unit, _): (&UnitName, &Life)| LeaseClaim {
            unit: unit.clone(),
            application: unit.application().clone(),
            seconds: LEASE_SECONDS,
        };
        units.filter(|(unit, life)| self.may_claim(unit, **life)).map(claim).collect()
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::view::LineNumber;

    use super::*;
    use crate::keeper::tests::fake::{frame, led_by, unit};

    fn due(local_units: &mut LocalUnits) -> Vec<String> {
        assert_eq!(local_units.has_unclaimed(), local_units.new_units().next().is_some());
        let claims = local_units.due_at_once();
        local_units.claimed(&claims);
        claims.iter().map(|claim| claim.unit.to_string()).collect()
    }

    #[test]
    fn a_new_unit_among_many_is_claimed_for_alone() {
        let mut local_units = LocalUnits::default();
        let mut puts = vec![led_by("app", "app/99999"), led_by("web", "web/9")];
        puts.extend((0..10_000).map(|number| unit(&format!("app/{number}"), Life::Alive)));
        puts.extend([unit("web/0", Life::Alive), unit("web/1", Life::Alive)]);
        local_units.observe(&frame(None, 1, puts.clone()));
        assert_eq!(due(&mut local_units).len(), 10_002);
        assert!(due(&mut local_units).is_empty() && local_units.unclaimed.is_empty());
        local_units.observe(&frame(Some(1), 2, vec![unit("app/10000", Life::Alive)]));
        assert_eq!(local_units.new_units().count(), 1);
        assert_eq!(due(&mut local_units), ["app/10000"]);
        // The whole view comes again, with one unit more.
        puts.push(unit("web/2", Life::Alive));
        local_units.observe(&frame(None, 3, puts));
        assert_eq!(due(&mut local_units), ["web/2"]);
        let ViewEntity::Application(mut web) = led_by("web", "web/9") else { panic!() };
        web.leader = None;
        local_units.observe(&frame(Some(3), 4, vec![ViewEntity::Application(web)]));
        for _ in 0..2 {
            assert_eq!(due(&mut local_units), ["web/0", "web/1", "web/2"], "for as long as it has none");
        }
        local_units.observe(&frame(Some(4), 5, vec![led_by("web", "web/9")]));
        assert!(due(&mut local_units).is_empty());
    }

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
