//! A hook run from its inputs to what it gathered.

use periapt_host_api::{
    LeaderTerm, ResourceName, Timestamp, UnitName,
    commit::{EarlyEffect, HookEffects},
    event::Event,
    journal::RecordedCalls,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::View,
};

use crate::{
    ActionGathered, CallError, CallTime, ContextError, FileError, FileRequest, IdSeed, LeaseState, Limits,
    OutputStream, actions::RunningAction, lease::Leadership, recorder::Recorder, run::HookRun,
    snapshot::Snapshot,
};

/// What a hook run starts from.
#[derive(Debug, Clone)]
pub struct HookInputs {
    /// The one snapshot that all reads are answered from.
    pub view: View,
    /// The unit.
    pub unit: UnitName,
    /// What the charm is told.
    pub event: Event,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The unit's leadership as the runner knows it.
    pub lease: LeaseState,
    /// 32 hex digits, drawn by the shell: the secret part of `JUJU_CONTEXT_ID`.
    pub context_id: String,
    /// Fresh randomness, for the ids of secrets that the hook makes; nobody else may know it.
    pub ids: IdSeed,
    /// `HOST:PORT` of each controller, for charms that show them; may be empty.
    pub api_addresses: Vec<String>,
    /// How much the hook may ask for.
    pub limits: Limits,
}

/// One hook run as the charm sees it.
///
/// Its methods are the typed door and [`Self::run_tool`] is the argv door; both record what they answer. Calls
/// are made one at a time (T-5): each takes `&mut self`.
#[derive(Debug)]
pub struct HookContext {
    pub(crate) run: HookRun,
    pub(crate) recorder: Recorder,
    pub(crate) context_id: String,
    pub(crate) api_addresses: Vec<String>,
    attempt: u32,
}

/// What a hook run leaves behind. Of a failed one the shell drops effects and term, and keeps the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Gathered {
    /// What is to be committed if the handler returned ok.
    pub effects: HookEffects,
    /// The leadership that leader-only effects rest on; none if there are none.
    pub leader_term: Option<LeaderTerm>,
    /// Whether the charm set its unit's status in this hook.
    pub status_set: bool,
    /// What an action left beside; none for hooks.
    pub action: Option<ActionGathered>,
    /// Early effects that were not drained yet, in order.
    pub early: Vec<(Timestamp, EarlyEffect)>,
    /// The host calls.
    pub calls: RecordedCalls,
    /// Bytes of log that the hook wrote, those past the budget included.
    pub log_bytes: u64,
}

impl HookContext {
    /// A run that is about to start.
    ///
    /// # Errors
    /// [`ContextError`]: the snapshot lacks the unit or something of its, or the context's id is none.
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
            context_id: inputs.context_id,
            api_addresses: inputs.api_addresses,
            attempt: inputs.attempt,
        })
    }

    /// What the charm is told.
    pub fn event(&self) -> &Event {
        &self.run.event
    }

    /// 1 for the first attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The unit.
    pub fn unit(&self) -> &UnitName {
        &self.run.snapshot.unit
    }

    /// The snapshot.
    pub fn view(&self) -> &View {
        &self.run.snapshot.view
    }

    /// Tells what came of the renewal that an [`Answer::NeedsLease`](crate::Answer::NeedsLease) asked for,
    /// whether it succeeded or not. The same call, made again, is then decided.
    pub fn lease_renewed(&mut self, state: LeaseState) {
        self.run.leadership.renewed(state);
    }

    /// Tells what came of the content that an [`Answer::NeedsSecret`](crate::Answer::NeedsSecret) asked for. The
    /// same call, made again, is then decided.
    pub fn secret_fetched(&mut self, key: SecretKey, content: Result<SecretData, CallError>) {
        self.run.secrets.fetched(key, content, self.run.limits.fetched_bytes);
    }

    /// Tells what came of the request that an [`Answer::NeedsFile`](crate::Answer::NeedsFile) made: a file's content,
    /// or nothing of one that was written. The same call, made again, is then decided.
    pub fn file_answered(&mut self, request: FileRequest, answer: Result<Vec<u8>, FileError>) {
        self.run.files.answered(request, answer);
    }

    /// The file that hooks find of a resource, by the charm that the unit runs; none if there is no such file.
    pub fn resource_filename(&self, name: &ResourceName) -> Option<&str> {
        self.run.snapshot.meta().resources.get(name)?.filename()
    }

    /// Whether the charm that the unit runs declares files that operators attach.
    pub fn has_resources(&self) -> bool {
        self.run.snapshot.meta().resources.values().any(|meta| meta.filename().is_some())
    }

    /// Tells what came of the content that an [`Answer::NeedsResource`](crate::Answer::NeedsResource) asked for:
    /// whether the hook finds it at its place now. The same call, made again, is then decided.
    pub fn resource_fetched(&mut self, key: ResourceKey, result: Result<(), CallError>) {
        self.recorder.record("resources.fetched", &(&key.name,), &(&key.digest, &result));
        self.run.resources.fetched(key, result);
    }

    /// Takes what the handler wrote to a stream: one line, or several that belong together.
    pub fn output_line(&mut self, now: CallTime, stream: OutputStream, text: &str) {
        self.run.log_output(now, stream, text);
    }

    /// Takes what an action's handler wrote to a stream, as it was written: it is part of the results (E-2).
    pub fn capture_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        if let Some(action) = &mut self.run.action {
            action.capture(stream, bytes, &self.run.limits);
        }
    }

    /// What left the hook early since the last drain: statuses, the version, log lines.
    pub fn drain_early(&mut self) -> Vec<(Timestamp, EarlyEffect)> {
        self.run.early.drain()
    }

    /// Ends the run.
    pub fn finish(self) -> Gathered {
        let status_set = self.run.statuses.unit_was_set();
        let action = self.run.action.map(RunningAction::finish);
        let (effects, leader_term) = self.run.effects.finish(self.run.secrets.into_changes());
        let (early, log_bytes) = self.run.early.finish();
        Gathered { effects, leader_term, status_set, action, early, calls: self.recorder.finish(), log_bytes }
    }
}
