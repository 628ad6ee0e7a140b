//! The commits of a unit's agent, hook by hook.

use std::collections::BTreeMap;

use periapt_host_api::{
    Refusal, RelationId,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    commit::{EarlyEffect, EarlyItem, UnitCommit},
    event::Event,
    record::{HookFailure, HookStep, Operation, RelationRecord},
    status::AgentStatus,
};

use super::{World, agent_status, unit};

impl World {
    /// Returns a commit that changes nothing but the record's `seq`.
    pub(crate) fn commit_of(&self, name: &str) -> UnitCommit {
        let found = self.unit(name);
        let agent = self.state().agent_of(found).expect("the unit has no machine");
        let mut record = found.record.clone();
        record.seq += 1;
        UnitCommit {
            unit: found.name.clone(),
            seq: found.record.seq,
            incarnation: self.incarnations[&(self.model, agent.clone())],
            record,
            effects: Default::default(),
            transitions: Default::default(),
            leader_term: None,
            early: Vec::new(),
            journal: None,
            uncommitted_usage: periapt_host_api::usage::Usage::default(),
        }
    }

    /// Sends a commit that `edit` makes from an empty one.
    pub(crate) fn commit(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut UnitCommit),
    ) -> Result<RunnerAnswer, Refusal> {
        let agent = self.agent_of(name);
        let mut commit = self.commit_of(name);
        edit(&mut commit);
        self.runner_call(&agent, RunnerCommand::Commit(Box::new(commit)))
    }

    /// Returns the next early item of a unit.
    pub(crate) fn item(&self, name: &str, effect: EarlyEffect) -> EarlyItem {
        EarlyItem { number: self.unit(name).early_number + 1, at: self.now, effect }
    }

    /// Brings a unit to idle: it runs its application's charm, and is installed and started.
    pub(crate) fn start(&mut self, name: &str) {
        let charm = self.application(unit(name).application().as_str()).charm;
        let idle = self.item(name, agent_status(AgentStatus::Idle, ""));
        self.commit(name, |commit| {
            commit.record.charm = Some(charm);
            commit.record.installed = true;
            commit.record.started = true;
            commit.early.push(idle);
        })
        .unwrap();
    }

    /// Commits a failed hook of a unit.
    pub(crate) fn fail(&mut self, name: &str, event: Event) {
        let message = format!("hook failed: \"{event}\"");
        let error = self.item(name, agent_status(AgentStatus::Error, &message));
        let failure =
            HookFailure { message, attempts: 1, failed_at: self.now, retry_after_ms: 5000, cut_short: false };
        self.commit(name, |commit| {
            commit.record.operation = Operation::Hook { event, step: HookStep::Failed(failure) };
            commit.early.push(error);
        })
        .unwrap();
    }

    /// Enters a unit into a scope, as its uniter does.
    pub(crate) fn enter(&mut self, name: &str, id: RelationId) -> Result<RunnerAnswer, Refusal> {
        let relation = self.relation(id).clone();
        let own = unit(name).application().clone();
        let entry = RelationRecord {
            endpoint: relation.end_of(&own).unwrap().name.clone(),
            remote_application: relation.other_end(&own).unwrap().application.clone(),
            created: false,
            members: Default::default(),
            applications: BTreeMap::new(),
            changed_pending: None,
            gone: 0,
        };
        self.commit(name, |commit| {
            commit.record.relations.insert(id, entry);
            commit.transitions.enter_scope.insert(id);
        })
    }

    /// Commits that a unit has run the joined or departed hook of another unit.
    pub(crate) fn tell(&mut self, name: &str, id: RelationId, of: &str, joined: bool) {
        self.commit(name, |commit| {
            let Some(entry) = commit.record.relations.get_mut(&id) else { return };
            if joined {
                entry.members.insert(unit(of), 1);
            } else {
                entry.members.remove(&unit(of));
            }
        })
        .unwrap();
    }

    /// Takes a unit out of a scope after its broken hook.
    pub(crate) fn leave(&mut self, name: &str, id: RelationId) -> Result<RunnerAnswer, Refusal> {
        self.commit(name, |commit| {
            commit.record.relations.remove(&id);
            commit.transitions.leave_scope.insert(id);
        })
    }

    /// Commits the end of a unit.
    pub(crate) fn terminate(&mut self, name: &str) -> Result<RunnerAnswer, Refusal> {
        self.commit(name, |commit| commit.transitions.terminate = true)
    }

    pub(crate) fn claim(&mut self, name: &str, seconds: u32) -> Result<RunnerAnswer, Refusal> {
        let agent = self.agent_of(name);
        let application = unit(name).application().clone();
        self.runner_call(&agent, RunnerCommand::Claim(LeaseClaim { unit: unit(name), application, seconds }))
    }
}
