//! Deaths, restarts, lost connections, and entities stored past all rules.

use std::collections::BTreeMap;

use periapt_host_api::{AgentName, relation::BagKey};
use periapt_model::{
    Entity, EntityKey, WorkerCommand,
    entity::{Application, Bag, Machine, Unit},
    view,
};

use super::Lab;
use crate::{
    Defect, LabError,
    agent::{Claims, Disk, Line, Process},
};

impl Lab {
    /// Gives every executor a defect from now on.
    pub fn plant(&mut self, defect: Defect) {
        self.defect = Some(defect);
    }

    /// Checks every unit that a frame does not concern from now on: its decision must stay the same.
    pub fn check_unconcerned_units(&mut self) {
        self.agents.values_mut().for_each(|agent| agent.doubts = true);
    }

    /// Ends an agent's processes at once, except its pods, which the next keeper takes over.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn kill_agent(&mut self, agent: &str) -> Result<(), LabError> {
        let name = self.agent(agent)?.name.clone();
        self.note_lost(&name);
        let Self { agents, controller, clock, .. } = self;
        match agents.get_mut(&name) {
            Some(agent) if agent.process != Process::Ended => agent.stop(controller, *clock),
            _ => Ok(()),
        }
    }

    /// Starts an agent's processes on the same host.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn start_agent(&mut self, agent: &str) -> Result<(), LabError> {
        let name = self.agent(agent)?.name.clone();
        let Self { agents, controller, clock, .. } = self;
        match agents.get_mut(&name) {
            Some(agent) if agent.process == Process::Ended => agent.start(controller, *clock),
            _ => Ok(()),
        }
    }

    /// Reboots the agent's host: all processes end, and the boot id changes (U-43).
    ///
    /// # Errors
    /// There is no such agent.
    pub fn reboot_host(&mut self, agent: &str) -> Result<(), LabError> {
        self.kill_agent(agent)?;
        let number = self.random.number();
        let host = self.agent_mut(agent)?;
        host.host.boot_id = format!("boot-{number:x}");
        host.pods.host_ends();
        self.start_agent(agent)
    }

    /// Gives an agent's host other addresses, which the agent reports when it starts.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn move_addresses(&mut self, agent: &str, addresses: &[&str]) -> Result<(), LabError> {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        self.agent_mut(agent)?.host.addresses = addresses;
        Ok(())
    }

    /// Ends the agent's runner and starts it again. Hooks in progress are lost, their early effects are not.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn crash_runner(&mut self, agent: &str) -> Result<(), LabError> {
        let name = self.agent(agent)?.name.clone();
        self.note_lost(&name);
        let Self { agents, controller, clock, .. } = self;
        match agents.get_mut(&name) {
            Some(agent) if agent.is_up() => agent.restart_runner(controller, *clock),
            _ => Ok(()),
        }
    }

    /// Stops an agent from making, deleting and reporting storage from now on.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn hold_disk(&mut self, agent: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.disk = Disk::Stuck;
        Ok(())
    }

    /// Makes every creation and deletion of storage on an agent fail from now on, for this reason.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn break_disk(&mut self, agent: &str, reason: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.disk = Disk::Broken(reason.to_owned());
        Ok(())
    }

    /// Repairs the agent's disk.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn mend_disk(&mut self, agent: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.disk = Disk::Works;
        Ok(())
    }

    /// Sets the treatment of leadership claims by an agent's keeper from now on.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn set_claims(&mut self, agent: &str, claims: Claims) -> Result<(), LabError> {
        self.agent_mut(agent)?.claims = claims;
        Ok(())
    }

    /// Restarts an agent with a bound on all storage on its disk, in mebibytes.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn limit_storage(&mut self, agent: &str, most: u64) -> Result<(), LabError> {
        self.kill_agent(agent)?;
        self.agent_mut(agent)?.host.storage_limit = Some(most);
        self.start_agent(agent)
    }

    /// Disconnects an agent: neither calls nor frames get through.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn cut_off(&mut self, agent: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.line = Line::Down;
        let name = self.agent(agent)?.name.clone();
        Ok(self.controller.worker(self.clock, WorkerCommand::AgentDisconnected(name))?)
    }

    /// Connects an agent again.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn reconnect(&mut self, agent: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.line = Line::Up;
        let name = self.agent(agent)?.name.clone();
        Ok(self.controller.worker(self.clock, WorkerCommand::AgentConnected(name))?)
    }

    /// Holds back all frames for an agent. Its calls get through.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn hold_frames(&mut self, agent: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.stream = Line::Down;
        Ok(())
    }

    /// Lets an agent's frames through again.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn release_frames(&mut self, agent: &str) -> Result<(), LabError> {
        self.agent_mut(agent)?.stream = Line::Up;
        Ok(())
    }

    /// Ends the controller's process and starts it again from its store, and checks that every view stays the same.
    ///
    /// # Errors
    /// [`LabError::RestartChanged`], if one does not.
    pub fn restart_controller(&mut self) -> Result<(), LabError> {
        let views: BTreeMap<AgentName, _> = self
            .agents
            .iter()
            .map(|(name, agent)| (name.clone(), view(self.controller.root(), &agent.caller())))
            .collect();
        self.controller.restart(self.clock)?;
        for (name, before) in views {
            let Some(agent) = self.agents.get(&name) else { continue };
            let after = view(self.controller.root(), &agent.caller());
            if before != after {
                let (puts, deletes) = before.difference(&after);
                let what = format!("{puts:?} {deletes:?}").chars().take(2_000).collect();
                return Err(LabError::RestartChanged { agent: name, what });
            }
            if agent.is_up() {
                self.controller.worker(self.clock, WorkerCommand::AgentConnected(name))?;
            }
        }
        Ok(())
    }

    /// Holds a unit: nothing of it runs until it is released or stepped.
    ///
    /// # Errors
    /// An invalid unit name.
    pub fn hold(&mut self, unit: &str) -> Result<(), LabError> {
        self.held.insert(unit.parse()?);
        Ok(())
    }

    /// Lets a held unit run again.
    ///
    /// # Errors
    /// An invalid unit name.
    pub fn release(&mut self, unit: &str) -> Result<(), LabError> {
        self.held.remove(&unit.parse()?);
        Ok(())
    }

    /// Changes a stored unit past all rules, as a restored backup would.
    ///
    /// # Errors
    /// There is no such unit.
    pub fn alter_unit(&mut self, name: &str, change: impl FnOnce(&mut Unit)) -> Result<(), LabError> {
        let mut unit = self.unit(name)?.clone();
        change(&mut unit);
        self.overwrite(unit.into());
        Ok(())
    }

    /// Changes a stored application past all rules.
    ///
    /// # Errors
    /// There is no such application.
    pub fn alter_application(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Application),
    ) -> Result<(), LabError> {
        let found = self.state()?.application(&name.parse()?);
        let mut application = found
            .map(|found| Application::clone(found))
            .ok_or_else(|| LabError::unknown("application", name))?;
        change(&mut application);
        self.overwrite(application.into());
        Ok(())
    }

    /// Changes a stored bag past all rules.
    ///
    /// # Errors
    /// There is no such bag.
    pub fn alter_bag(&mut self, key: &BagKey, change: impl FnOnce(&mut Bag)) -> Result<(), LabError> {
        let found = self.state()?.bag(key).ok_or_else(|| LabError::unknown("bag", format!("{key:?}")))?;
        let mut bag = Bag::clone(found);
        change(&mut bag);
        self.overwrite(bag.into());
        Ok(())
    }

    /// Gives a unit's machine, with everything on it, to another agent.
    ///
    /// # Errors
    /// There is no such unit, or it has no machine.
    pub fn move_machine_of(&mut self, unit: &str, agent: &str) -> Result<(), LabError> {
        let to = self.agent(agent)?.name.clone();
        let id = self.unit(unit)?.machine.ok_or_else(|| LabError::unknown("machine of unit", unit))?;
        let machine = self.state()?.machine(&id).ok_or_else(|| LabError::unknown("machine", id))?;
        let machine = Machine { agent: to, ..Machine::clone(machine) };
        self.overwrite(machine.into());
        Ok(())
    }

    fn overwrite(&mut self, entity: Entity) {
        if let Some(key) = entity.model_key() {
            self.controller.overwrite(EntityKey::InModel(self.model, key), entity);
        }
    }
}
