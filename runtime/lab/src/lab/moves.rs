//! Moves: the smallest events of a model, one at a time and nothing beside it, for explorations of every order of
//! events.

use std::time::Duration;

use periapt_host_api::UnitName;

use super::Lab;
use crate::{
    LabError,
    agent::{Agent, Process, Step},
};

impl Lab {
    /// Decides on a unit's next operation. A hook's handler runs, and nothing of it is committed; an operation
    /// without a handler is committed at once. Returns true if there was one.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn begin(&mut self, unit: &UnitName) -> Result<bool, LabError> {
        let mut acted = false;
        while self.micro(unit)? == Step::Acted {
            acted = true;
            if !self.is_in_flight(unit) || self.has_run(unit) {
                break;
            }
        }
        self.deliver()?;
        Ok(acted)
    }

    /// Commits the unit's hook that ran.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn finish(&mut self, unit: &UnitName) -> Result<(), LabError> {
        while self.is_in_flight(unit) && self.micro(unit)? == Step::Acted {}
        self.deliver()
    }

    /// Runs the due work of controller and keepers until there is none.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn tend(&mut self) -> Result<(), LabError> {
        while self.do_due_work()? || self.flush(None)? {}
        Ok(())
    }

    /// Runs the due work of the controller, while all agents are silent.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn work(&mut self) -> Result<(), LabError> {
        self.controller.work(self.clock)?;
        self.deliver()
    }

    /// Claims leadership for a unit, before its agent claims it for any other.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn claim(&mut self, unit: &UnitName) -> Result<(), LabError> {
        let Self { agents, controller, clock, .. } = self;
        let looking_after = |agent: &&mut Agent| agent.is_up() && agent.drivers.contains_key(unit);
        if let Some(agent) = agents.values_mut().find(looking_after) {
            agent.claim(controller, *clock, unit)?;
        }
        self.deliver()
    }

    /// Lets time pass without any other event.
    pub fn pass(&mut self, duration: Duration) {
        self.clock.pass(duration);
    }

    /// Returns true if an operation of a unit is in progress.
    pub fn is_in_flight(&self, unit: &UnitName) -> bool {
        self.agents.values().filter_map(|agent| agent.drivers.get(unit)).any(|it| it.is_in_flight())
    }

    /// Returns true if a hook of a unit ran whose end is not reported.
    fn has_run(&self, unit: &UnitName) -> bool {
        self.agents.values().filter_map(|agent| agent.drivers.get(unit)).any(|it| it.has_run())
    }

    /// Returns the units that running agents manage, by name.
    pub fn units_looked_after(&self) -> Vec<UnitName> {
        self.looked_after()
    }

    /// Forgets the trace and the records, which do not decide what happens next.
    pub fn forget_past(&mut self) {
        self.trace = Default::default();
        self.controller.forget_records();
    }

    /// Returns true if an agent's processes run.
    pub fn is_running(&self, agent: &str) -> bool {
        self.agent(agent).is_ok_and(|agent| agent.process == Process::Running)
    }

    /// Delivers all frames.
    ///
    /// # Errors
    /// A mirror that differs from its view.
    pub fn deliver(&mut self) -> Result<(), LabError> {
        for agent in self.agents.values_mut() {
            agent.catch_up(&self.controller, self.clock)?;
        }
        Ok(())
    }
}
