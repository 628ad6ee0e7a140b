//! Access rules of relation bags (`docs/hook-model.md` 2.7). They apply per unit, because all units of one runner
//! share one snapshot.

use periapt_host_api::{
    ApplicationName, RelationId, UnitName,
    relation::{BagKey, BagOwner, Settings},
};
use serde::Serialize;

use crate::{
    CallAnswer, CallError, CallTime,
    context::{HookContext, HookRun},
    effects::Target,
    lease::Interruption,
    relations::OwnRelation,
    snapshot::Snapshot,
};

/// The owner of a bag that a charm reads, as the charm names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BagSelector {
    /// A unit's bag.
    Unit(String),
    /// An application's bag.
    Application(String),
}

/// The own bag that a unit writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnBag {
    /// The unit's bag.
    Unit,
    /// The application's bag; leader only.
    Application,
}

/// A bag that the unit may read.
struct Readable {
    owner: BagOwner,
    /// The target of this hook's own writes to the bag.
    written: Option<Target>,
}

/// The typed interface: `relations`.
impl HookContext {
    /// Returns a whole bag.
    pub fn relation_get(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
    ) -> CallAnswer<Result<Settings, CallError>> {
        self.leader_call("relations.get", (relation, bag), |run| run.bag(now, relation, bag))
    }

    /// Returns one value of a bag.
    pub fn relation_get_value(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
        key: &str,
    ) -> CallAnswer<Result<Option<String>, CallError>> {
        self.leader_call("relations.get-value", (relation, bag, key), |run| {
            run.bag_value(now, relation, bag, key)
        })
    }

    /// Writes to an own bag, all or nothing. An empty value deletes its key. Of a key that is given twice the
    /// last value counts.
    pub fn relation_set(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: OwnBag,
        changes: &[(String, String)],
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("relations.set", (relation, bag, changes), |run| {
            run.check_call(changes.iter().map(|(key, value)| key.len() + value.len()).sum())?;
            run.write_bag(now, relation, bag, changes.iter().cloned().collect())
        })
    }
}

impl HookRun {
    /// Returns a whole bag.
    pub(crate) fn bag(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
    ) -> Result<Settings, Interruption> {
        let bag = self.readable(now, relation, bag)?;
        let stored = self.stored(relation, bag.owner);
        Ok(match bag.written {
            Some(target) => self.effects.merged(stored, target),
            None => stored.cloned().unwrap_or_default(),
        })
    }

    /// Returns one value of a bag.
    pub(crate) fn bag_value(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
        key: &str,
    ) -> Result<Option<String>, Interruption> {
        let bag = self.readable(now, relation, bag)?;
        let stored = self.stored(relation, bag.owner);
        Ok(match bag.written {
            Some(target) => self.effects.merged_value(stored, target, key),
            None => stored.and_then(|settings| settings.get(key)).cloned(),
        })
    }

    /// Writes to an own bag, all or nothing.
    pub(crate) fn write_bag(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: OwnBag,
        changes: Settings,
    ) -> Result<(), Interruption> {
        self.relation(relation)?;
        match bag {
            OwnBag::Unit => {
                let owner = BagOwner::Unit(self.snapshot.unit.clone());
                let stored = stored(&self.snapshot, relation, owner);
                self.effects.write(Target::UnitBag(relation), stored, changes, &self.limits)?;
            }
            OwnBag::Application => {
                let Some(term) = self.leader_term(now)? else {
                    return Err(CallError::NotLeader("cannot write relation settings".to_owned()).into());
                };
                let owner = BagOwner::Application(self.snapshot.unit.application().clone());
                let stored = stored(&self.snapshot, relation, owner);
                self.effects.write(Target::ApplicationBag(relation), stored, changes, &self.limits)?;
                self.effects.rest_on(term);
            }
        }
        Ok(())
    }

    fn readable(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
    ) -> Result<Readable, Interruption> {
        let own_application = self.snapshot.unit.application();
        let known = self.relation(relation)?;
        match bag {
            BagSelector::Unit(name) => Ok(self.readable_unit(known, name)?),
            BagSelector::Application(name) if *name == own_application.as_str() => {
                let owner = BagOwner::Application(own_application.clone());
                if !known.peer {
                    self.leader_reads_own_application(now, relation)?;
                }
                Ok(Readable { owner, written: Some(Target::ApplicationBag(relation)) })
            }
            BagSelector::Application(name) => {
                let application = ApplicationName::new(name)
                    .map_err(|_| CallError::invalid(format!("invalid application name {name:?}")))?;
                if application != *known.remote_application {
                    return Err(CallError::denied().into());
                }
                Ok(Readable { owner: BagOwner::Application(application), written: None })
            }
        }
    }

    fn readable_unit(&self, relation: OwnRelation<'_>, name: &str) -> Result<Readable, CallError> {
        let unit: UnitName = name.parse().map_err(|_| match ApplicationName::new(name) {
            Ok(_) => CallError::invalid(format!("expected unit name, got application name {name:?}")),
            Err(_) => CallError::invalid(format!("invalid unit name {name:?}")),
        })?;
        if unit == self.snapshot.unit {
            let written = Some(Target::UnitBag(relation.id));
            return Ok(Readable { owner: BagOwner::Unit(unit), written });
        }
        if !self.is_opposite(relation, &unit) {
            return Err(CallError::denied());
        }
        let owner = BagOwner::Unit(unit);
        match self.stored(relation.id, owner.clone()) {
            Some(_) => Ok(Readable { owner, written: None }),
            None => Err(CallError::NotFound(format!("unit {name:?}: settings not found"))),
        }
    }

    /// Refuses a unit that does not lead: outside peer relations only the leader reads its application's own bag.
    fn leader_reads_own_application(
        &mut self,
        now: CallTime,
        relation: RelationId,
    ) -> Result<(), Interruption> {
        if self.leader_term(now)?.is_none() {
            return Err(CallError::denied().into());
        }
        let owner = BagOwner::Application(self.snapshot.unit.application().clone());
        // The controller shows the bag to the leader alone: a snapshot from before the election has none.
        if !self.snapshot.leads() && self.stored(relation, owner).is_none() {
            let text = format!("the application's settings in relation {relation} have not arrived yet");
            return Err(CallError::TryAgain(text).into());
        }
        Ok(())
    }

    fn stored(&self, relation: RelationId, owner: BagOwner) -> Option<&Settings> {
        stored(&self.snapshot, relation, owner)
    }
}

/// Returns a bag as the snapshot has it.
fn stored(snapshot: &Snapshot, relation: RelationId, owner: BagOwner) -> Option<&Settings> {
    snapshot.view.bags.get(&BagKey { relation, owner }).map(|bag| &bag.settings)
}
