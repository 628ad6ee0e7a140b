//! The agent's registration: the facts about its host and itself that its controller keeps. The keeper sends it at the
//! start, and again when the program or the state of the host's firewall changes.

use std::{future::pending, time::Duration};

use periapt_client::Backoff;
use periapt_host_api::{ErrorCode, Refusal, agent::Register, program::RunningProgram};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::controller::{Controller, ControllerError};
use crate::metrics::metrics;

/// The shortest pause between two reports about the firewall. Each is a write to the controller's store, and charms that
/// open and close ports may have a problem begin and end all the time.
pub(super) const REPORTED_EVERY: Duration = Duration::from_secs(10);

/// The registration of one agent.
pub(crate) struct AgentRegistration<C> {
    controller: C,
    /// The registration as it was sent last.
    register: Register,
    /// True if the controller has answered that it took it.
    is_taken: bool,
    /// The problem of the host's firewall; none if the agent writes no rules.
    problem: Option<watch::Receiver<Option<String>>>,
    /// The time of the next report about the firewall, at the earliest.
    not_before: Instant,
}

impl<C: Controller> AgentRegistration<C> {
    /// Creates a registration that was not sent yet.
    pub(crate) fn new(
        controller: C,
        register: Register,
        problem: Option<watch::Receiver<Option<String>>>,
    ) -> Self {
        Self { controller, register, is_taken: false, problem, not_before: Instant::now() }
    }

    /// Sets the program that the agent runs, for the next time that the registration is sent.
    pub(crate) fn set_program(&mut self, program: Option<RunningProgram>) {
        self.register.program = program;
    }

    /// Sends the registration, and retries while the controller is away.
    ///
    /// # Errors
    /// The controller refuses the agent.
    pub(crate) async fn send(&mut self) -> Result<(), Refusal> {
        let mut backoff = Backoff::network();
        loop {
            match self.send_once().await {
                Ok(()) => return Ok(()),
                Err(ControllerError::Refused(refusal)) if refusal.code != ErrorCode::Internal => {
                    return Err(refusal);
                }
                Err(error) => {
                    let wait = backoff.failed();
                    metrics().retries.inc(&["stream"]);
                    tracing::info!(%error, ?wait, "not registered yet");
                    sleep(wait).await;
                }
            }
        }
    }

    /// Waits until the controller is to be told that a problem of the firewall has begun, changed or ended. Cancellation
    /// loses nothing.
    pub(crate) async fn due(&mut self) {
        let Some(problem) = &mut self.problem else { return pending().await };
        sleep_until(self.not_before).await;
        let told = &self.register.firewall_problem;
        if self.is_taken && problem.wait_for(|problem| problem != told).await.is_err() {
            // The firewall has ended, and with it what there is to tell.
            pending().await
        }
    }

    /// Tells the controller about the firewall. A report that fails is due again after a pause, and ends no agent, not even
    /// if the controller refuses it.
    pub(crate) async fn report(&mut self) {
        if let Err(error) = self.send_once().await {
            tracing::info!(%error, "the controller does not know the state of the host's firewall yet");
        }
        self.not_before = Instant::now() + REPORTED_EVERY;
    }

    /// Sends the registration with the present problem of the firewall.
    async fn send_once(&mut self) -> Result<(), ControllerError> {
        self.register.firewall_problem = self.problem.as_ref().and_then(|problem| problem.borrow().clone());
        // A request without an answer may have had its effect.
        self.is_taken = false;
        self.controller.register(self.register.clone()).await?;
        self.is_taken = true;
        Ok(())
    }
}
