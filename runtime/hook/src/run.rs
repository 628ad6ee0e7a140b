//! The state of one hook run. Files of their own hold the behaviour of each subject; the interfaces call
//! them.

use periapt_host_api::{LeaderTerm, event::Event, ports::PortTable};

use crate::{
    CallError, CallTime, HookLimits,
    actions::RunningAction,
    early::EarlyEffects,
    effects::Effects,
    exec::ExecRelation,
    files::Files,
    lease::{Interruption, Leadership},
    resources::Resources,
    secrets::{IdSeed, Secrets},
    snapshot::Snapshot,
    status::Statuses,
};

/// The state of one run.
#[derive(Debug)]
pub(crate) struct HookRun {
    pub(crate) snapshot: Snapshot,
    pub(crate) event: Event,
    pub(crate) limits: HookLimits,
    pub(crate) effects: Effects,
    pub(crate) early: EarlyEffects,
    pub(crate) statuses: Statuses,
    pub(crate) leadership: Leadership,
    pub(crate) action: Option<RunningAction>,
    pub(crate) secrets: Secrets,
    pub(crate) files: Files,
    /// The relation and remote unit of a script.
    pub(crate) exec_relation: Option<ExecRelation>,
    pub(crate) resources: Resources,
}

impl HookRun {
    pub(crate) fn new(
        snapshot: Snapshot,
        event: Event,
        leadership: Leadership,
        ids: IdSeed,
        limits: HookLimits,
    ) -> Self {
        let ports = PortTable::new(snapshot.machine().ports_of(&snapshot.unit));
        Self {
            effects: Effects::new(ports),
            early: EarlyEffects::new(&limits),
            statuses: Statuses::default(),
            action: RunningAction::of(&event, &snapshot.view),
            secrets: Secrets::new(ids),
            files: Files::default(),
            exec_relation: None,
            resources: Resources::default(),
            snapshot,
            event,
            limits,
            leadership,
        }
    }

    /// Returns the term, if the unit is leader. Call it before any effect, because it may interrupt the call.
    pub(crate) fn leader_term(&mut self, now: CallTime) -> Result<Option<LeaderTerm>, Interruption> {
        self.leadership.check(now, self.snapshot.led_by_another())
    }

    /// Refuses a call whose arguments exceed [`Limits::call_bytes`].
    pub(crate) fn check_call(&self, bytes: usize) -> Result<(), CallError> {
        if bytes > self.limits.call_bytes {
            return Err(CallError::LimitExceeded(format!(
                "the call's arguments are {bytes} bytes long; at most {} are allowed",
                self.limits.call_bytes
            )));
        }
        Ok(())
    }
}
