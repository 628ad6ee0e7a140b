//! Clocks that are set, and processes that stand still.

use std::time::Duration;

use jiff::SignedDuration;
use periapt_host_api::{UnitName, status::Life, timing::LEADERSHIP_GUARANTEE_MS};
use periapt_model::WorkerCommand;

use super::Lab;
use crate::{LabError, agent::Process};

impl Lab {
    /// How long the laboratory has been there, by the clock that nobody sets.
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(self.clock.boot_ms())
    }

    /// Sets the clock for people forward, or back, on all hosts.
    pub fn set_clock(&mut self, by: SignedDuration) {
        self.clock.set(by);
    }

    /// Stops an agent's processes, as SIGSTOP does: they do nothing, and keep what they know. The controller finds
    /// their streams dead.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn pause_agent(&mut self, agent: &str) -> Result<(), LabError> {
        let found = self.agent_mut(agent)?;
        if found.process == Process::Running {
            found.process = Process::Paused;
            let name = found.name.clone();
            self.controller.worker(self.clock, WorkerCommand::AgentDisconnected(name))?;
        }
        Ok(())
    }

    /// Lets an agent's processes go on, which know nothing of the time that has passed but what the clocks show.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn resume_agent(&mut self, agent: &str) -> Result<(), LabError> {
        let found = self.agent_mut(agent)?;
        if found.process == Process::Paused {
            found.process = Process::Running;
            let (name, up) = (found.name.clone(), found.is_up());
            if up {
                self.controller.worker(self.clock, WorkerCommand::AgentConnected(name))?;
            }
        }
        Ok(())
    }

    /// The units of an application whose charm would be told now, without a word from the controller, that it leads:
    /// in whose agent's memory there is a lease with enough of it left (D-3).
    ///
    /// # Errors
    /// The model is gone.
    pub fn believers(&self, application: &str) -> Result<Vec<UnitName>, LabError> {
        let guaranteed = self.clock.boot_ms().saturating_add(LEADERSHIP_GUARANTEE_MS);
        let of_application = self
            .state()?
            .units()
            .filter(|unit| unit.name.application().as_str() == application && unit.life != Life::Dead);
        let believes = |unit: &UnitName| {
            self.agents
                .values()
                .filter(|agent| agent.process != Process::Ended)
                .any(|agent| agent.lease(unit).held.is_some_and(|lease| lease.valid_until_ms >= guaranteed))
        };
        Ok(of_application.map(|unit| unit.name.clone()).filter(believes).collect())
    }
}
