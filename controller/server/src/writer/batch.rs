//! One batch: a state that is not durable yet, and its writes.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal, Revision, command::ControllerCommand, trace::TraceContext,
};
use periapt_model::{
    Changes, Environment, Evaluated, Input, Output, RequestedCommand, Root, audit, audited,
    entity::EntityKey, evaluate_once, scope_admits_request,
};
use periapt_store::{
    Batch,
    codec::{self, Writes},
};

use super::{Answered, Sender};
use crate::refusals::Refusals;

/// The state after the commands so far, and their writes.
pub(super) struct Speculation {
    root: Root,
    expected: Revision,
    differs: bool,
    writes: Vec<Writes>,
    models: BTreeSet<ModelUuid>,
    outside: bool,
    causes: Vec<(ModelUuid, TraceContext)>,
    refusals: Refusals,
}

/// A batch that is ready to be written.
pub(super) struct Speculated {
    /// The state afterwards, still with the old revision.
    pub(super) root: Root,
    /// The batch to write, if there is anything to store.
    pub(super) batch: Option<Batch>,
    /// True if the state differs at all.
    pub(super) differs: bool,
    /// The models that are written.
    pub(super) models: BTreeSet<ModelUuid>,
    /// True if anything outside of models is written.
    pub(super) outside: bool,
    /// The traced commands that write in models.
    pub(super) causes: Vec<(ModelUuid, TraceContext)>,
}

impl Speculation {
    pub(super) fn new(durable: &Root, refusals: Refusals) -> Self {
        Self {
            root: durable.clone(),
            expected: durable.revision(),
            differs: false,
            writes: Vec::new(),
            models: BTreeSet::new(),
            outside: false,
            causes: Vec::new(),
            refusals,
        }
    }

    /// Evaluates one command on top of those before it. A refused command leaves no trace but its entry in the audit log,
    /// or its part of a sum.
    /// A command of a request that was sent before leaves none at all.
    /// `cause` is the command's span.
    pub(super) fn evaluate(
        &mut self,
        sender: &Sender,
        input: &Input,
        command: Option<&RequestedCommand>,
        environment: &Environment,
        cause: Option<TraceContext>,
    ) -> Result<Answered, Refusal> {
        let caller = &sender.caller;
        // The model does not panic. If it did, one command must not end all others.
        let evaluated = catch_unwind(AssertUnwindSafe(|| match &sender.scope {
            Some(scope) if !scope_admits_request(&self.root, caller, scope, input) => {
                Err(Refusal::permission_denied("permission denied"))
            }
            _ => evaluate_once(&self.root, caller, input, command, environment),
        }));
        let evaluated = evaluated.unwrap_or_else(|_| {
            tracing::error!(?caller, ?input, "evaluating a command panicked");
            Err(Refusal::new(ErrorCode::Internal, "the controller has a defect; see its log"))
        });
        // A model that comes has thousands of pages: its begin and its end are enough.
        let is_page = matches!(input, Input::Controller(ControllerCommand::ImportPage(_)));
        let request = |result: Result<&Output, &Refusal>| {
            if is_page && result.is_ok() {
                return None;
            }
            Some(audited((caller, sender.origin.as_ref()?), input, result, environment))
        };
        let result = evaluated.and_then(|evaluated| match evaluated {
            Evaluated::New { mut changes, kept, output } => {
                changes.extend(
                    request(Ok(&output)).map(|request| audit(&self.root, request)).unwrap_or_default(),
                );
                Ok((prepared(changes)?, prepared(kept)?, Answered { output, response: None }))
            }
            Evaluated::Repeated { output, response } => {
                Ok((Prepared::default(), Prepared::default(), Answered { output, response }))
            }
        });
        match result {
            Ok((prepared, kept, answered)) => {
                self.take(prepared, cause);
                self.take(kept, None);
                Ok(answered)
            }
            Err(refusal) => {
                let request = request(Err(&refusal));
                let now_ms = environment.lease_now_ms;
                if let Some(request) = request.and_then(|request| self.refusals.admit(request, now_ms)) {
                    self.take(prepared(audit(&self.root, request))?, None);
                }
                Err(refusal)
            }
        }
    }

    fn take(&mut self, Prepared { changes, writes }: Prepared, cause: Option<TraceContext>) {
        if changes == Changes::default() {
            return;
        }
        self.writes.extend(writes);
        let mut models = BTreeSet::new();
        for key in changes.puts.keys() {
            match key {
                EntityKey::InModel(model, _) => drop(models.insert(*model)),
                // No view shows it.
                EntityKey::AuditHead(_) | EntityKey::Answer(_) => {}
                _ => self.outside = true,
            }
        }
        self.causes
            .extend(cause.into_iter().flat_map(|cause| models.iter().map(move |model| (*model, cause))));
        self.models.append(&mut models);
        self.root = self.root.apply(&changes, self.expected);
        self.differs = true;
    }

    pub(super) fn finish(self) -> Speculated {
        let Self { root, expected, differs, writes, models, outside, causes, .. } = self;
        let batch = (!writes.is_empty()).then(|| codec::batch(expected, writes));
        Speculated { root, batch, differs, models, outside, causes }
    }
}

/// The changes of a command, with their stored form.
#[derive(Default)]
struct Prepared {
    changes: Changes,
    writes: Option<Writes>,
}

/// Makes the stored form of changes. Writes that no store would take are refused here; later, they would fail the whole
/// batch.
fn prepared(changes: Changes) -> Result<Prepared, Refusal> {
    if changes.stores_nothing() {
        return Ok(Prepared { changes, writes: None });
    }
    let writes =
        Writes::of(&changes).map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
    writes.fit().map_err(|error| Refusal::new(ErrorCode::QuotaExceeded, error.to_string()))?;
    Ok(Prepared { changes, writes: Some(writes) })
}

/// Returns the state with another revision.
pub(super) fn at_revision(root: &Root, revision: Revision) -> Root {
    root.apply(&Changes::default(), revision)
}

/// Returns the model that a command is about, if it is about one.
pub(super) fn model_of(input: &Input) -> Option<ModelUuid> {
    match input {
        Input::Model(model, _) | Input::Runner(model, _) => Some(*model),
        Input::Controller(ControllerCommand::DestroyModel { model, .. }) => Some(*model),
        Input::Worker(command) => command.model(),
        Input::Controller(_)
        | Input::Identity(_)
        | Input::UploadCharm(_)
        | Input::UploadResource(_)
        | Input::Backup { .. }
        | Input::Register(..)
        | Input::Audit(_)
        | Input::Join { .. } => None,
    }
}
