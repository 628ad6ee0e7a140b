//! A unit under a test's control: it is held, and the test makes its commits.

use std::collections::BTreeMap;

use periapt_host_api::{
    Incarnation, RelationId, Timestamp, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    commit::{BagChanges, EarlyEffect, EarlyItem, HookEffects, Transitions, UnitCommit},
    record::RelationRecord,
    relation::Settings,
    status::AgentStatus,
};
use periapt_model::{Input, Output, entity::Unit};

use super::Lab;
use crate::{LabError, transport::transported};

/// A held unit's commits, one by one. The test decides what its charm would do; only the controller's rules hold.
#[derive(Debug)]
pub struct ManualUnit<'a> {
    lab: &'a mut Lab,
    unit: UnitName,
}

impl Lab {
    /// Puts a unit under the test's control, and holds it from now on.
    ///
    /// # Errors
    /// There is no such unit, or it has no machine yet.
    pub fn manual_unit(&mut self, unit: &str) -> Result<ManualUnit<'_>, LabError> {
        self.hold(unit)?;
        self.do_due_work()?;
        let name = self.unit(unit)?.name.clone();
        Ok(ManualUnit { lab: self, unit: name })
    }
}

impl Lab {
    /// Calls the controller as an agent's runner would.
    ///
    /// # Errors
    /// The refusal, or there is no such agent.
    pub fn call(&mut self, agent: &str, command: RunnerCommand) -> Result<RunnerAnswer, LabError> {
        let caller = self.agent(agent)?.caller();
        let input = Input::Runner(self.model, transported("a runner's call", &command)?);
        match self.controller.submit(self.clock, &caller, &input)? {
            Output::Runner(answer) => Ok(answer),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }
}

impl ManualUnit<'_> {
    /// Enters the scope of a relation.
    ///
    /// # Errors
    /// The refusal.
    pub fn enter(&mut self, relation: RelationId) -> Result<&mut Self, LabError> {
        let found = self.lab.state()?.relation(&relation);
        let found = found.ok_or_else(|| LabError::unknown("relation", relation))?;
        let (own, other) =
            match (found.end_of(self.unit.application()), found.other_end(self.unit.application())) {
                (Some(own), Some(other)) => (own.name.clone(), other.application.clone()),
                _ => return Err(LabError::unknown("endpoint of unit", &self.unit)),
            };
        let record = RelationRecord {
            endpoint: own,
            remote_application: other,
            created: true,
            members: Default::default(),
            applications: BTreeMap::new(),
            changed_pending: None,
            gone: 0,
        };
        self.commit(|commit| {
            commit.record.relations.insert(relation, record);
            commit.transitions.enter_scope.insert(relation);
        })
    }

    /// Leaves the scope of a relation, as the commit of relation-broken does.
    ///
    /// # Errors
    /// The refusal.
    pub fn leave(&mut self, relation: RelationId) -> Result<&mut Self, LabError> {
        self.commit(|commit| {
            commit.record.relations.remove(&relation);
            commit.transitions.leave_scope.insert(relation);
        })
    }

    /// Writes to the unit's own bag, in one hook.
    ///
    /// # Errors
    /// The refusal.
    pub fn write(&mut self, relation: RelationId, settings: &[(&str, &str)]) -> Result<&mut Self, LabError> {
        let unit = texts(settings);
        let changes = BagChanges { unit, ..BagChanges::default() };
        self.commit(|commit| {
            commit.effects.bags.insert(relation, changes);
        })
    }

    /// Writes to the application's bag. The controller refuses a unit that does not lead.
    ///
    /// # Errors
    /// The refusal.
    pub fn write_application(
        &mut self,
        relation: RelationId,
        settings: &[(&str, &str)],
    ) -> Result<&mut Self, LabError> {
        let changes = BagChanges { application: texts(settings), ..BagChanges::default() };
        let application = self.lab.state()?.application(self.unit.application());
        let leader = application.and_then(|application| application.leader.clone());
        let term = leader.filter(|leader| leader.unit == self.unit).map(|leader| leader.term);
        self.commit(|commit| {
            commit.effects.bags.insert(relation, changes);
            commit.leader_term = term;
        })
    }

    /// Makes a dying unit dead (U-39).
    ///
    /// # Errors
    /// The refusal.
    pub fn die(&mut self) -> Result<(), LabError> {
        self.commit(|commit| {
            commit.record.relations.clear();
            commit.transitions.terminate = true;
        })
        .map(|_| ())
    }

    /// Makes a commit that follows the unit's last one, after `change` has edited it.
    ///
    /// # Errors
    /// The refusal.
    pub fn commit(&mut self, change: impl FnOnce(&mut UnitCommit)) -> Result<&mut Self, LabError> {
        let unit: &Unit = self.lab.unit(&self.unit.to_string())?;
        let (agent, incarnation) = self.runner(unit)?;
        let mut record = unit.record.clone();
        record.seq = record.seq.saturating_add(1);
        let mut commit = UnitCommit {
            unit: self.unit.clone(),
            seq: unit.record.seq,
            incarnation,
            record,
            effects: HookEffects::default(),
            transitions: Transitions::default(),
            leader_term: None,
            early: self.first_words(unit),
            journal: None,
            uncommitted_usage: periapt_host_api::usage::Usage::default(),
        };
        change(&mut commit);
        self.call(&agent, RunnerCommand::Commit(Box::new(commit)))
    }

    /// Sends early effects, numbered on from the unit's last.
    ///
    /// # Errors
    /// The refusal.
    pub fn say(&mut self, effects: impl IntoIterator<Item = EarlyEffect>) -> Result<&mut Self, LabError> {
        let items = self.items(effects)?;
        let (agent, incarnation) = self.runner(self.lab.unit(&self.unit.to_string())?)?;
        let command = RunnerCommand::Early { unit: self.unit.clone(), incarnation, items };
        self.call(&agent, command)
    }

    /// Numbers early effects on from the unit's last, as they are sent.
    ///
    /// # Errors
    /// The unit is gone.
    pub fn items(&self, effects: impl IntoIterator<Item = EarlyEffect>) -> Result<Vec<EarlyItem>, LabError> {
        Ok(numbered(self.lab.unit(&self.unit.to_string())?, self.lab.now(), effects))
    }

    /// Returns the runner that manages the unit, and its incarnation.
    fn runner(&self, unit: &Unit) -> Result<(String, Incarnation), LabError> {
        let state = self.lab.state()?;
        let agent = state.agent_of(unit).ok_or_else(|| LabError::unknown("agent of unit", &self.unit))?;
        let incarnation = state.runner(agent).map_or(Incarnation::default(), |runner| runner.incarnation);
        Ok((agent.to_string(), incarnation))
    }

    fn call(&mut self, agent: &str, command: RunnerCommand) -> Result<&mut Self, LabError> {
        match self.lab.call(agent, command)? {
            RunnerAnswer::Done => Ok(self),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Returns an early status of an agent that has not reported yet. An agent that commits has reported, so the
    /// controller does not remove its unit without it (L-1).
    fn first_words(&self, unit: &Unit) -> Vec<EarlyItem> {
        if unit.agent_status.status != AgentStatus::Allocating {
            return Vec::new();
        }
        let effect = EarlyEffect::AgentStatus {
            status: AgentStatus::Idle,
            message: String::new(),
            data: serde_json::Map::new(),
        };
        numbered(unit, self.lab.now(), [effect])
    }
}

fn numbered(unit: &Unit, at: Timestamp, effects: impl IntoIterator<Item = EarlyEffect>) -> Vec<EarlyItem> {
    let numbers = unit.early_number.saturating_add(1)..;
    numbers.zip(effects).map(|(number, effect)| EarlyItem { number, at, effect }).collect()
}

fn texts(settings: &[(&str, &str)]) -> Settings {
    settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
