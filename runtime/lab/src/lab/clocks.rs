//! Clock changes and paused processes.

use std::time::Duration;

use jiff::SignedDuration;
use periapt_host_api::{UnitName, status::Life, timing::LEADERSHIP_GUARANTEE_MS};
use periapt_model::WorkerCommand;

use super::Lab;
use crate::{LabError, agent::Process};

impl Lab {
    /// Returns the time since the laboratory's start, by the clock that cannot be set.
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(self.clock.boot_ms())
    }

    /// Sets the wall clock forward or back, on all hosts.
    pub fn set_clock(&mut self, by: SignedDuration) {
        self.clock.set(by);
    }

    /// Stops an agent's processes, as SIGSTOP does: they do nothing, and keep their memory. The controller finds
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

    /// Resumes an agent's processes, which learn from the clocks alone how much time has passed.
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

    /// Returns the units of an application whose charm would be told now, without a call to the controller, that it
    /// leads: those with enough of a lease left in their agent's memory (D-3).
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
