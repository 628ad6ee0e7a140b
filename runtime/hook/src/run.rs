//! The state of one hook run. Its subjects' behaviours stand in files of their own; the doors call them.

use periapt_host_api::{LeaderTerm, event::Event, ports::PortTable};

use crate::{
    CallError, CallTime, Limits,
    actions::RunningAction,
    early::Early,
    effects::Effects,
    exec::Subject,
    files::Files,
    lease::{Halt, Leadership},
    resources::Resources,
    secrets::{IdSeed, Secrets},
    snapshot::Snapshot,
    status::Statuses,
};

/// One run.
#[derive(Debug)]
pub(crate) struct HookRun {
    pub(crate) snapshot: Snapshot,
    pub(crate) event: Event,
    pub(crate) limits: Limits,
    pub(crate) effects: Effects,
    pub(crate) early: Early,
    pub(crate) statuses: Statuses,
    pub(crate) leadership: Leadership,
    pub(crate) action: Option<RunningAction>,
    pub(crate) secrets: Secrets,
    pub(crate) files: Files,
    /// What a tool that is run from outside is about.
    pub(crate) subject: Option<Subject>,
    pub(crate) resources: Resources,
}

impl HookRun {
    pub(crate) fn new(
        snapshot: Snapshot,
        event: Event,
        leadership: Leadership,
        ids: IdSeed,
        limits: Limits,
    ) -> Self {
        let ports = PortTable::new(snapshot.machine().ports_of(&snapshot.unit));
        Self {
            effects: Effects::new(ports),
            early: Early::new(&limits),
            statuses: Statuses::default(),
            action: RunningAction::of(&event, &snapshot.view),
            secrets: Secrets::new(ids),
            files: Files::default(),
            subject: None,
            resources: Resources::default(),
            snapshot,
            event,
            limits,
            leadership,
        }
    }

    /// The term, if the unit is leader; to be asked before anything else is done, as it may halt the call.
    pub(crate) fn leader_term(&mut self, now: CallTime) -> Result<Option<LeaderTerm>, Halt> {
        self.leadership.check(now, self.snapshot.led_by_another())
    }

    /// Refuses a call whose arguments are too large to be worked on.
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
