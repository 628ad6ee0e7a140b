//! The containers of units: real cores of pods, or pods that a test plays.

use periapt_host_api::{UnitName, notice::WorkloadNotice};
use periapt_pebble::{PodAnswer, PodRequest, Spawn};

use super::Lab;
use crate::{
    LabError, ProbeAnswer, ProcessLife,
    agent::Agent,
    pods::{PodWorld, pod_id},
};

impl Lab {
    /// Lets keepers start a pod with a real core for each container of their units, from now on.
    pub fn run_containers(&mut self) {
        self.containers.has_cores = true;
    }

    /// Sets the life of a program's processes that are started from now on.
    pub fn set_program(&mut self, program: &str, life: ProcessLife) {
        self.containers.programs.insert(program.to_owned(), life);
    }

    /// Sets the answer to probes of a URL, or of `HOST:PORT`, from now on.
    pub fn answer_probes(&mut self, target: &str, answer: ProbeAnswer) {
        self.containers.probes.insert(target.to_owned(), answer);
    }

    /// Sends a request to the Pebble of a container, as its workload does, which is answered at once.
    ///
    /// # Errors
    /// There is no such container with a core, Pebble refuses, or it lets its client wait.
    pub fn pebble(
        &mut self,
        unit: &str,
        container: &str,
        request: PodRequest,
    ) -> Result<PodAnswer, LabError> {
        let id = pod_id(unit, container)?;
        let (agent, mut world) = self.with_pods_of(&id.0)?;
        let asked = agent.pods.ask(&id, request, &mut world)?;
        let answer = agent.pods.answer(&id, asked)?;
        answer.ok_or_else(|| LabError::unknown("answer of Pebble in container", container))
    }

    /// Kills the processes of a program in a container with a core. Returns their number.
    ///
    /// # Errors
    /// There is no such container with a core.
    pub fn kill_program(&mut self, unit: &str, container: &str, program: &str) -> Result<usize, LabError> {
        let id = pod_id(unit, container)?;
        let (agent, mut world) = self.with_pods_of(&id.0)?;
        agent.pods.kill(&id, program, &mut world)
    }

    /// Starts the workload of a unit's container, first or anew, which the test plays: its Pebble listens with this boot
    /// id.
    ///
    /// # Errors
    /// There is no such unit on an agent.
    pub fn start_workload(&mut self, unit: &str, container: &str, boot_id: &str) -> Result<(), LabError> {
        let id = pod_id(unit, container)?;
        self.with_pods_of(&id.0)?.0.pods.play(&id, boot_id.to_owned());
        Ok(())
    }

    /// Ends the workload of a unit's container with all that it has. The keeper of a real core starts it again.
    ///
    /// # Errors
    /// There is no such unit on an agent.
    pub fn end_workload(&mut self, unit: &str, container: &str) -> Result<(), LabError> {
        let id = pod_id(unit, container)?;
        let (agent, world) = self.with_pods_of(&id.0)?;
        agent.pods.end(&id, world.clock);
        Ok(())
    }

    /// Lets the workload of a unit's container, which a test plays, make a notice.
    ///
    /// # Errors
    /// There is no such unit on an agent, or no such workload.
    pub fn notify(&mut self, unit: &str, container: &str, notice: WorkloadNotice) -> Result<(), LabError> {
        let id = pod_id(unit, container)?;
        self.with_pods_of(&id.0)?.0.pods.notify(&id, notice)
    }

    /// Returns the id of a container's start.
    ///
    /// # Errors
    /// The container does not run.
    pub fn boot_id(&self, unit: &str, container: &str) -> Result<&str, LabError> {
        let id = pod_id(unit, container)?;
        let found = self.agents.values().find_map(|agent| agent.pods.boot_id(&id));
        found.ok_or_else(|| LabError::unknown("container", container))
    }

    /// Returns the notices since a container's start, each with its last number.
    ///
    /// # Errors
    /// An invalid name.
    pub fn notices(&self, unit: &str, container: &str) -> Result<Vec<(u64, WorkloadNotice)>, LabError> {
        let id = pod_id(unit, container)?;
        Ok(self.agents.values().flat_map(|agent| agent.pods.notices(&id)).collect())
    }

    /// Returns the processes of a container with a core, in the order of their starts.
    ///
    /// # Errors
    /// An invalid name.
    pub fn processes(&self, unit: &str, container: &str) -> Result<Vec<Spawn>, LabError> {
        let id = pod_id(unit, container)?;
        Ok(self.agents.values().flat_map(|agent| agent.pods.processes(&id)).collect())
    }

    /// Returns the agent that manages a unit, or whose host has its pods, with the surroundings of the pods.
    fn with_pods_of(&mut self, unit: &UnitName) -> Result<(&mut Agent, PodWorld<'_>), LabError> {
        let has = |agent: &&mut Agent| agent.drivers.contains_key(unit) || agent.pods.has(unit);
        let agent = self.agents.values_mut().find(has);
        let agent = agent.ok_or_else(|| LabError::unknown("unit of an agent", unit))?;
        let world = PodWorld { clock: self.clock, scenario: &self.containers, random: &mut self.random };
        Ok((agent, world))
    }
}
