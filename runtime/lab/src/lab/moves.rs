//! Moves: the smallest things that happen in a model, one at a time and nothing beside it, for whoever explores what
//! can happen in every order.

use std::time::Duration;

use periapt_host_api::UnitName;

use super::Lab;
use crate::{
    LabError,
    agent::{Agent, Process, Step},
};

impl Lab {
    /// Decides on a unit's next operation. The handler of a hook runs, and nothing of it is committed; what needs no
    /// handler is committed at once. Answers whether there was anything to do.
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

    /// Commits the hook of a unit that ran.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn finish(&mut self, unit: &UnitName) -> Result<(), LabError> {
        while self.is_in_flight(unit) && self.micro(unit)? == Step::Acted {}
        self.deliver()
    }

    /// What controller and keepers have to do now, until they have nothing more to do.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn tend(&mut self) -> Result<(), LabError> {
        while self.upkeep()? || self.flush(None)? {}
        Ok(())
    }

    /// What the controller has to do now, with all agents silent.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn work(&mut self) -> Result<(), LabError> {
        self.controller.work(self.clock)?;
        self.deliver()
    }

    /// A unit's agent asks that it may lead, before it asks so for any other unit.
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

    /// Time passes, and nothing else happens.
    pub fn pass(&mut self, duration: Duration) {
        self.clock.pass(duration);
    }

    /// Whether an operation of a unit is in progress.
    pub fn is_in_flight(&self, unit: &UnitName) -> bool {
        self.agents.values().filter_map(|agent| agent.drivers.get(unit)).any(|it| it.is_in_flight())
    }

    /// Whether a hook of a unit ran that is not committed.
    fn has_run(&self, unit: &UnitName) -> bool {
        self.agents.values().filter_map(|agent| agent.drivers.get(unit)).any(|it| it.has_run())
    }

    /// The units that running agents look after, by name.
    pub fn units_looked_after(&self) -> Vec<UnitName> {
        self.looked_after()
    }

    /// Forgets what ran, and what was written about it: where the model stands is not in it.
    pub fn forget_past(&mut self) {
        self.trace = Default::default();
        self.controller.forget_records();
    }

    /// Whether an agent's processes run.
    pub fn is_running(&self, agent: &str) -> bool {
        self.agent(agent).is_ok_and(|agent| agent.process == Process::Running)
    }

    /// All frames arrive.
    ///
    /// # Errors
    /// A mirror that is not its view.
    pub fn deliver(&mut self) -> Result<(), LabError> {
        for agent in self.agents.values_mut() {
            agent.catch_up(&self.controller, self.clock)?;
        }
        Ok(())
    }
}
