//! A hook run, from its inputs to its gathered effects: its state, and the context around it that records calls. Files of
//! their own hold the behaviour of each subject, with the typed functions that lead to it.

use periapt_host_api::{
    LeaderTerm, ResourceName, Timestamp, UnitName,
    commit::{EarlyEffect, HookEffects},
    event::Event,
    journal::RecordedCalls,
    ports::PortTable,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::View,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    ActionResults, CallAnswer, CallError, CallTime, ContextError, FileError, FileRequest, HookLimits, IdSeed,
    LeaseState, OutputStream, RecordedBudgets, ReplayedCalls,
    actions::RunningAction,
    early::EarlyEffects,
    effects::Effects,
    exec::ExecRelation,
    files::Files,
    lease::{Interruption, Leadership, into_answer},
    recorder::{BEGIN, FILE, Recorder},
    replay::Replay,
    resources::Resources,
    secrets::Secrets,
    snapshot::Snapshot,
    status::Statuses,
};

/// The inputs of a hook run.
#[derive(Debug, Clone)]
pub struct HookInputs {
    /// The one snapshot that answers all reads.
    pub view: View,
    /// The unit.
    pub unit: UnitName,
    /// The event that the charm handles.
    pub event: Event,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The unit's leadership, as the runner knows it.
    pub lease: LeaseState,
    /// 32 hex digits, drawn by the host: the secret part of `JUJU_CONTEXT_ID`.
    pub context_id: String,
    /// Fresh randomness for the ids of secrets that the hook makes. The host must keep it secret.
    pub ids: IdSeed,
    /// `HOST:PORT` of each controller, for charms that show them; may be empty.
    pub api_addresses: Vec<String>,
    /// The bounds of the run.
    pub limits: HookLimits,
}

/// One hook run as the charm sees it.
///
/// Its methods are the typed interface, and [`Self::run_tool`] is the argv interface. Both record their answers. Each
/// call takes `&mut self`, so calls are made one at a time (T-5).
#[derive(Debug)]
pub struct HookContext {
    pub(crate) run: HookRun,
    pub(crate) recorder: Recorder,
    /// The record that answers the calls of a replay.
    pub(crate) replay: Option<Replay>,
    pub(crate) context_id: String,
    pub(crate) api_addresses: Vec<String>,
    attempt: u32,
}

/// The way in which a call is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privacy {
    Open,
    /// Arguments and answer are kept apart, to be sealed.
    Sealed,
}

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

/// The outcome of a hook run. Of a failed one the host drops effects and term, and keeps the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct HookResults {
    /// The effects to commit if the handler returned ok.
    pub effects: HookEffects,
    /// The leadership term that leader-only effects rest on; none if there are no such effects.
    pub leader_term: Option<LeaderTerm>,
    /// True if the charm set its unit's status in this hook.
    pub status_set: bool,
    /// The action's outcome; none for hooks.
    pub action: Option<ActionResults>,
    /// Early effects that the host has not drained, in order.
    pub early: Vec<(Timestamp, EarlyEffect)>,
    /// The recorded host calls; of a replay none.
    pub calls: RecordedCalls,
    /// The calls of a replay; none for a run that was no replay.
    pub replayed: Option<ReplayedCalls>,
    /// Bytes of log that the hook wrote, with those past the budget.
    pub log_bytes: u64,
}

impl HookContext {
    /// Starts a run.
    ///
    /// # Errors
    /// [`ContextError`]: the snapshot lacks the unit or an entry that the unit needs, or the context's id is
    /// malformed.
    pub fn new(inputs: HookInputs) -> Result<Self, ContextError> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if inputs.context_id.len() != 32 || !inputs.context_id.bytes().all(hex) {
            return Err(ContextError::ContextId);
        }
        if let Some(task) = inputs.event.task()
            && !inputs.view.tasks.contains_key(&task)
        {
            return Err(ContextError::Missing { unit: inputs.unit, what: "the task" });
        }
        let snapshot = Snapshot::new(inputs.view, inputs.unit)?;
        let leadership = Leadership::new(inputs.lease);
        let recorder = Recorder::new(inputs.limits.journal_bytes);
        Ok(Self {
            run: HookRun::new(snapshot, inputs.event, leadership, inputs.ids, inputs.limits),
            recorder,
            replay: None,
            context_id: inputs.context_id,
            api_addresses: inputs.api_addresses,
            attempt: inputs.attempt,
        })
    }

    /// Answers the calls from a record. Snapshot, lease and seed of the inputs answer none of them.
    #[must_use]
    pub fn replaying(self, calls: RecordedCalls) -> Self {
        Self { replay: Some(Replay::new(calls)), ..self }
    }

    /// Returns true if this is a replay, and the run made another call than the recorded one. The host must end it.
    pub fn differs(&self) -> bool {
        self.replay.as_ref().is_some_and(Replay::differs)
    }

    /// Begins a run in the sandbox: records its budgets and its environment, and returns the environment. A replay
    /// returns the recorded one.
    pub fn begin(&mut self, budgets: &RecordedBudgets) -> Vec<(String, String)> {
        if let Some(recorded) = self.replay.as_mut().and_then(|replay| replay.answer_of(BEGIN)) {
            return recorded;
        }
        let environment = self.environment();
        self.recorder.record(BEGIN, budgets, &environment);
        environment
    }

    /// Returns the event that the charm handles.
    pub fn event(&self) -> &Event {
        &self.run.event
    }

    /// Returns the number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the unit.
    pub fn unit(&self) -> &UnitName {
        &self.run.snapshot.unit
    }

    /// Returns the snapshot.
    pub fn view(&self) -> &View {
        &self.run.snapshot.view
    }

    /// Takes the result of the renewal that an [`CallAnswer::NeedsLease`](crate::CallAnswer::NeedsLease) requested, success
    /// or failure. The host then repeats the call, which is decided by it.
    pub fn lease_renewed(&mut self, state: LeaseState) {
        self.run.leadership.renewed(state);
    }

    /// Takes the content, or the error, for an [`CallAnswer::NeedsSecret`](crate::CallAnswer::NeedsSecret). The host then
    /// repeats the call, which is decided by it.
    pub fn secret_fetched(&mut self, key: SecretKey, content: Result<SecretData, CallError>) {
        self.run.secrets.fetched(key, content, self.run.limits.fetched_bytes);
    }

    /// Takes the result of the request in an [`CallAnswer::NeedsFile`](crate::CallAnswer::NeedsFile): the content of a file
    /// that was read, no bytes for one that was written. The host then repeats the call, which is decided by it.
    pub fn file_answered(&mut self, request: FileRequest, answer: Result<Vec<u8>, FileError>) {
        match &mut self.replay {
            Some(replay) => replay.file_answered(),
            // The output of a tool may have secret content.
            None => self.recorder.record_confidential(FILE, &(), &request),
        }
        self.run.files.answered(request, answer);
    }

    /// Returns the name of a resource's file, by the charm that the unit runs. None if the resource has no file.
    pub fn resource_filename(&self, name: &ResourceName) -> Option<&str> {
        self.run.snapshot.meta().resources.get(name)?.filename()
    }

    /// Returns true if the charm that the unit runs declares file resources.
    pub fn has_resources(&self) -> bool {
        self.run.snapshot.meta().resources.values().any(|meta| meta.filename().is_some())
    }

    /// Takes the result of an [`CallAnswer::NeedsResource`](crate::CallAnswer::NeedsResource): ok if the file is in its place
    /// now. The host then repeats the call, which is decided by it.
    pub fn resource_fetched(&mut self, key: ResourceKey, result: Result<(), CallError>) {
        self.recorder.record("resources.fetched", &(&key.name,), &(&key.digest, &result));
        self.run.resources.fetched(key, result);
    }

    /// Logs output of the handler: one line, or several that belong together.
    pub fn output_line(&mut self, now: CallTime, stream: OutputStream, text: &str) {
        self.run.log_output(now, stream, text);
    }

    /// Captures raw output of an action's handler, which becomes part of the results (E-2).
    pub fn capture_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        if let Some(action) = &mut self.run.action {
            action.capture(stream, bytes, &self.run.limits);
        }
    }

    /// Takes the early effects since the last drain: statuses, the version, log lines.
    pub fn drain_early(&mut self) -> Vec<(Timestamp, EarlyEffect)> {
        self.run.early.drain()
    }

    /// Makes a call, and records it with its answer.
    pub(crate) fn call<A: Serialize, T: Serialize + DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: A,
        behaviour: impl FnOnce(&mut HookRun) -> T,
    ) -> T {
        if let Some(answer) = self.replayed(function, &arguments) {
            return answer;
        }
        let answer = behaviour(&mut self.run);
        self.recorder.record(function, &arguments, &answer);
        answer
    }

    /// Makes a call that may need leadership. It is recorded when it is answered, not when the host must repeat
    /// it.
    pub(crate) fn leader_call<A: Serialize, T: Serialize + DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: A,
        behaviour: impl FnOnce(&mut HookRun) -> Result<T, Interruption>,
    ) -> CallAnswer<Result<T, CallError>> {
        self.recorded(function, Privacy::Open, &arguments, behaviour)
    }

    /// Makes a call, and records it once it is answered.
    pub(crate) fn recorded<A: Serialize, T: Serialize + DeserializeOwned>(
        &mut self,
        function: &str,
        privacy: Privacy,
        arguments: &A,
        behaviour: impl FnOnce(&mut HookRun) -> Result<T, Interruption>,
    ) -> CallAnswer<Result<T, CallError>> {
        if let Some(answer) = self.replayed(function, arguments) {
            return CallAnswer::Ready(answer);
        }
        let answer = into_answer(behaviour(&mut self.run));
        match (&answer, privacy) {
            (CallAnswer::Ready(result), Privacy::Open) => self.recorder.record(function, arguments, result),
            (CallAnswer::Ready(result), Privacy::Sealed) => {
                self.recorder.record_confidential(function, arguments, result);
            }
            _ => {}
        }
        answer
    }

    /// Returns the recorded answer to a call. Returns none if this is no replay, or the call is not the recorded one: then
    /// its answer counts for nothing, because the host ends the run.
    pub(crate) fn replayed<A: Serialize, T: DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: &A,
    ) -> Option<T> {
        self.replay.as_mut()?.answer(function, arguments)
    }

    /// Ends the run.
    pub fn finish(self) -> HookResults {
        let status_set = self.run.statuses.unit_was_set();
        let action = self.run.action.map(RunningAction::finish);
        let (effects, leader_term) = self.run.effects.finish(self.run.secrets.into_changes());
        let (early, log_bytes) = self.run.early.finish();
        HookResults {
            effects,
            leader_term,
            status_set,
            action,
            early,
            calls: self.recorder.finish(),
            replayed: self.replay.map(Replay::finish),
            log_bytes,
        }
    }
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
