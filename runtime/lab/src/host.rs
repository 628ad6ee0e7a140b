//! The services of the laboratory for a hook in progress.

use std::time::Duration;

use periapt_hook::{CallError, CallTime, LeaseState};
use periapt_host_api::{
    ContainerName, ErrorCode, Refusal, Timestamp,
    commit::EarlyEffect,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};
use periapt_pebble::{PodAnswer, PodRequest};
use periapt_uniter::executor::ExecutorInput;

use crate::{
    HookHost, LabError,
    agent::{Driver, World},
};

/// The laboratory, as one hook of one unit uses it.
pub(crate) struct Host<'a, 'b> {
    pub(crate) world: &'a mut World<'b>,
    pub(crate) unit: &'a mut Driver,
    pub(crate) seed: [u8; 32],
}

fn refused(refusal: Refusal) -> CallError {
    match refusal.code {
        ErrorCode::PermissionDenied => CallError::PermissionDenied(refusal.message),
        ErrorCode::NotFound => CallError::NotFound(refusal.message),
        _ => CallError::Failed(refusal.message),
    }
}

/// The longest sleep without a check for due work: leases are renewed more often.
const NAP: Duration = Duration::from_secs(5);

/// The time between two looks for an answer of Pebble, and the most of them: a hook waits for a minute and a half.
const POLL: Duration = Duration::from_millis(100);
const MAX_POLLS: usize = 900;

impl HookHost for Host<'_, '_> {
    fn now(&self) -> CallTime {
        self.world.clock.call_time()
    }

    fn seed(&self) -> [u8; 32] {
        self.seed
    }

    fn renew_lease(&mut self) -> LeaseState {
        let World { clock, controller, agent, .. } = &mut *self.world;
        if agent.is_up() {
            // Success or failure, the answer is the lease held afterwards.
            let _ = agent.claim(controller, **clock, self.unit.name());
        }
        agent.lease(self.unit.name())
    }

    fn fetch_secret(&mut self, key: SecretKey) -> Result<SecretData, CallError> {
        if !self.world.agent.is_up() {
            return Err(CallError::TryAgain("the controller is not reachable, try again".to_owned()));
        }
        let World { controller, agent, .. } = &*self.world;
        controller.secret(&agent.caller(), self.unit.name(), &key).map_err(refused)
    }

    fn fetch_resource(&mut self, key: &ResourceKey) -> Result<(), CallError> {
        if !self.world.agent.is_up() {
            return Err(CallError::TryAgain("the controller is not reachable, try again".to_owned()));
        }
        let World { controller, agent, .. } = &*self.world;
        controller.resource(&agent.caller(), self.unit.name(), key).map_err(refused)
    }

    fn early(&mut self, items: Vec<(Timestamp, EarlyEffect)>) {
        // An error of the laboratory itself shows at the hook's end.
        let _ = self.unit.feed(ExecutorInput::Said(items), self.world);
    }

    fn pebble(&mut self, container: &ContainerName, request: PodRequest) -> Result<PodAnswer, LabError> {
        let pod = (self.unit.name().clone(), container.clone());
        let (agent, mut world) = self.world.pods();
        let asked = agent.pods.ask(&pod, request, &mut world)?;
        for _ in 0..MAX_POLLS {
            if let Some(answer) = self.world.agent.pods.answer(&pod, asked)? {
                return Ok(answer);
            }
            self.sleep(POLL);
        }
        let (agent, mut world) = self.world.pods();
        agent.pods.give_up(&pod, asked, &mut world);
        Err(LabError::unknown("answer of Pebble in container", container))
    }

    /// Sleeps while the pods live, the keeper renews leases, and the outbox sends effects that have waited long
    /// enough.
    fn sleep(&mut self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            let nap = left.min(NAP);
            left = left.saturating_sub(nap);
            self.world.clock.pass(nap);
            let World { clock, controller, agent, .. } = &mut *self.world;
            let _ = agent.keep_leases(controller, **clock);
            let (agent, mut pods) = self.world.pods();
            let _ = agent.keep_pods(&mut pods);
            let World { clock, agent, .. } = &mut *self.world;
            let due = self.unit.early_due().is_some_and(|due| due <= agent.time(**clock).steady);
            if agent.is_up() && due {
                let _ = self.unit.feed(ExecutorInput::Woken, self.world);
            }
        }
    }
}
