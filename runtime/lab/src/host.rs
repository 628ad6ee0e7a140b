//! What a hook in progress gets from its laboratory.

use std::time::Duration;

use periapt_hook::{CallError, CallTime, LeaseState};
use periapt_host_api::{
    ErrorCode, Refusal, Timestamp, UnitName,
    commit::EarlyEffect,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};

use crate::{
    HookHost,
    agent::{Agent, Outbox},
    clock::Clock,
    controller::Controller,
};

/// The laboratory, as one hook of one unit uses it.
pub(crate) struct Host<'a> {
    pub(crate) clock: &'a mut Clock,
    pub(crate) controller: &'a mut Controller,
    pub(crate) agent: &'a mut Agent,
    pub(crate) unit: &'a UnitName,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) seed: [u8; 32],
}

fn refused(refusal: Refusal) -> CallError {
    match refusal.code {
        ErrorCode::PermissionDenied => CallError::PermissionDenied(refusal.message),
        ErrorCode::NotFound => CallError::NotFound(refusal.message),
        _ => CallError::Failed(refusal.message),
    }
}

/// The longest sleep between two looks at what time brings: leases are renewed more often.
const NAP: Duration = Duration::from_secs(5);

impl HookHost for Host<'_> {
    fn now(&self) -> CallTime {
        self.clock.call_time()
    }

    fn seed(&self) -> [u8; 32] {
        self.seed
    }

    fn renew_lease(&mut self) -> LeaseState {
        if self.agent.is_up() {
            // Whatever goes wrong, what is held afterwards is the answer.
            let _ = self.agent.claim(self.controller, *self.clock, self.unit);
        }
        self.agent.lease(self.unit)
    }

    fn fetch_secret(&mut self, key: SecretKey) -> Result<SecretData, CallError> {
        if !self.agent.is_up() {
            return Err(CallError::TryAgain("the controller is away, try again".to_owned()));
        }
        self.controller.secret(&self.agent.caller(), self.unit, &key).map_err(refused)
    }

    fn fetch_resource(&mut self, key: &ResourceKey) -> Result<(), CallError> {
        if !self.agent.is_up() {
            return Err(CallError::TryAgain("the controller is away, try again".to_owned()));
        }
        self.controller.resource(&self.agent.caller(), self.unit, key).map_err(refused)
    }

    fn early(&mut self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.outbox.push(self.clock.now(), items);
    }

    /// The keeper renews leases meanwhile, and the outbox sends what has waited for long enough.
    fn sleep(&mut self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            let nap = left.min(NAP);
            left = left.saturating_sub(nap);
            self.clock.pass(nap);
            let _ = self.agent.keep_leases(self.controller, *self.clock);
            if self.agent.is_up() && self.outbox.due().is_some_and(|due| due <= self.clock.now()) {
                let (caller, incarnation) = (self.agent.caller(), self.agent.incarnation);
                let _ = self.outbox.flush(self.controller, *self.clock, &caller, incarnation);
            }
        }
    }
}
