//! The migration of models to other controllers: this controller carries each model over, hands it over, and has the other
//! one take it. It begins where it was after a restart.

mod carry;
mod pages;

use std::{collections::BTreeSet, time::Duration};

use periapt_client::{Backoff, Client, ClientError, Identity, Options};
use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    command::{Caller, ControllerCommand},
    secret::SealedFor,
};
use periapt_model::{
    Input, Sealer as _, WorkerCommand,
    entity::{Export, Failed, Migration},
};
use periapt_transport::Trust;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{state::ControllerState, writer::QueueKey};

/// The first pause after a step that failed, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The attempts to reach the other controller for the first time. A model whose way is barred stays at once.
const FIRST_ATTEMPTS: u32 = 4;

/// The time in which a migration whose way is barred ends at once. Later it waits, as after a restart of both controllers.
const BARRED_WITHIN: Duration = Duration::from_secs(60);

/// The longest wait until this controller shows what was written.
const SHOWN_WITHIN: Duration = Duration::from_secs(30);

/// The migrations of all models.
#[derive(Clone)]
pub(crate) struct Migrations(ControllerState);

impl Migrations {
    pub(crate) fn new(state: ControllerState) -> Self {
        Self(state)
    }

    /// Carries each model that migrates, until the controller stops.
    pub(crate) async fn run(self, until: CancellationToken) {
        let mut state = self.0.durable.state.clone();
        let (mut tasks, mut begun) = (JoinSet::new(), BTreeSet::new());
        loop {
            let published = state.seen();
            for (model, known) in published.root.migrating_models() {
                let goes = match known.migration() {
                    Some(Migration::Exporting(_) | Migration::HandedOver(_)) => true,
                    Some(Migration::Failed(failed)) => failed.untold.is_some(),
                    Some(Migration::Moved(_) | Migration::Importing(_)) | None => false,
                };
                if goes && begun.insert(*model) {
                    tasks.spawn(Outgoing::new(self.0.clone(), *model).run());
                }
            }
            tokio::select! {
                () = until.cancelled() => return,
                alive = state.changed() => if !alive { return },
                Some(ended) = tasks.join_next() => match ended {
                    Ok(model) => {
                        begun.remove(&model);
                    }
                    Err(_) => return,
                },
            }
        }
    }
}

/// The reason why a step did not succeed.
enum Stop {
    /// The migration cannot go on.
    Failed(String),
    /// The step may succeed later.
    Later(String),
    /// The migration is in another phase by now.
    Over,
}

impl Stop {
    /// Returns the reason as one that may pass.
    fn later(self) -> Self {
        match self {
            Self::Failed(reason) => Self::Later(reason),
            other => other,
        }
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Refused(refusal) if !refusal.code.is_temporary() => {
                Self::Failed(refusal.message.clone())
            }
            other if other.is_temporary() || other.refusal().is_some() => Self::Later(other.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal.code.is_temporary() {
            true => Self::Later(refusal.message),
            false => Self::Failed(refusal.message),
        }
    }
}

/// The migration of one model.
struct Outgoing {
    state: ControllerState,
    model: ModelUuid,
    /// True once the other controller has answered.
    reached: bool,
    /// The migration of which this task has sent all pages that have come.
    sent: Option<Uuid>,
}

impl Outgoing {
    fn new(state: ControllerState, model: ModelUuid) -> Self {
        Self { state, model, reached: false, sent: None }
    }

    /// Runs until the model has moved or stays, and returns the model.
    async fn run(mut self) -> ModelUuid {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let (mut attempts, mut last) = (0, None);
        loop {
            let published = self.state.durable.current();
            let state = published.root.model_or_remains(&self.model).cloned();
            let Some(migration) = state.as_ref().and_then(|state| state.migration()) else { break };
            let stopped = match migration {
                Migration::Exporting(export) => {
                    if last.as_ref().is_none_or(|last: &Export| last.id != export.id) {
                        (attempts, self.reached) = (0, false);
                    }
                    last = Some(export.clone());
                    match self.carry(&published.root, export).await {
                        Ok(()) => self.submit(WorkerCommand::HandOverModel(self.model, export.id)).await,
                        Err(stop) => Err(stop),
                    }
                }
                Migration::HandedOver(export) => {
                    last = Some(export.clone());
                    match self.activate(export).await {
                        Ok(()) => self.submit(WorkerCommand::NoteMoved(self.model, export.id)).await,
                        // The model stays handed over until the other controller takes it.
                        Err(stop) => Err(stop.later()),
                    }
                }
                // It has stayed, so that no part of it may ever be taken over.
                Migration::Failed(Failed { id, untold: Some(export), .. }) => {
                    last = Some(Export::clone(export));
                    match self.give_up(export).await {
                        Ok(()) => self.submit(WorkerCommand::NoteAbortTold(self.model, *id)).await,
                        Err(stop) => Err(stop.later()),
                    }
                }
                Migration::Failed(_) | Migration::Moved(_) | Migration::Importing(_) => break,
            };
            let Some(export) = &last else { break };
            attempts += 1;
            match stopped {
                Ok(()) => {
                    backoff.succeeded();
                    // Whatever a step has changed, none may loop without a pause.
                    tokio::time::sleep(FIRST_PAUSE).await;
                }
                Err(Stop::Over) => {}
                Err(Stop::Failed(reason)) => self.fail(export.id, reason).await,
                Err(Stop::Later(reason))
                    if self.has_just_begun(migration) && !self.reached && attempts >= FIRST_ATTEMPTS =>
                {
                    let to = export.target.addresses.join(", ");
                    self.fail(export.id, format!("the controller at {to} cannot be reached: {reason}")).await;
                }
                Err(Stop::Later(reason)) => {
                    let wait = backoff.failed();
                    tracing::warn!(model = %self.model, reason, ?wait, "a migration waits");
                    tokio::time::sleep(wait).await;
                }
            }
        }
        if let Some(export) = last
            && let Ok(client) = self.client(&export)
            && let Err(error) = client.log_out().await
        {
            tracing::info!(%error, "the session of a migration could not be ended; it ends by itself");
        }
        self.model
    }

    /// Returns true if the model began to be carried a moment ago.
    fn has_just_begun(&self, migration: &Migration) -> bool {
        let Migration::Exporting(export) = migration else { return false };
        self.state.clock.now().duration_since(export.since).unsigned_abs() < BARRED_WITHIN
    }

    /// Returns a client of the other controller.
    fn client(&self, export: &Export) -> Result<Client, Stop> {
        let lost = || Stop::Failed("the key of this controller is another one by now".to_owned());
        let token = self.state.sealer.key.open(SealedFor::Migration(self.model), &export.token);
        let token = token.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()).ok_or_else(lost)?;
        let options = Options::new(export.target.addresses.join(","), Identity::Token(token))
            .with_trust(Trust::Authority(export.target.authority.clone()));
        Ok(Client::new(options)?)
    }

    /// Has the other controller take the model over.
    async fn activate(&mut self, export: &Export) -> Result<(), Stop> {
        let (model, id) = (self.model, export.id);
        self.client(export)?.controller_command(ControllerCommand::ActivateImport { model, id }).await?;
        self.reached = true;
        Ok(())
    }

    /// Has the other controller delete what came of a model that has stayed.
    async fn give_up(&self, export: &Export) -> Result<(), Stop> {
        let (model, id) = (self.model, export.id);
        self.abort(export, ControllerCommand::AbortImport { model, id, unless_held: false }).await
    }

    /// Has the other controller delete what came of a model in part.
    async fn give_up_part(&self, export: &Export) -> Result<(), Stop> {
        let (model, id) = (self.model, export.id);
        self.abort(export, ControllerCommand::AbortImport { model, id, unless_held: true }).await
    }

    async fn abort(&self, export: &Export, command: ControllerCommand) -> Result<(), Stop> {
        match self.client(export)?.controller_command(command).await {
            Ok(_) => Ok(()),
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes that the migration cannot go on.
    async fn fail(&self, id: Uuid, reason: String) {
        tracing::warn!(model = %self.model, reason, "a migration failed");
        let failed = WorkerCommand::NoteMigrationFailed { model: self.model, id, reason };
        if self.submit(failed).await.is_err() {
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
    }

    /// Submits a command, and waits until its effect is shown.
    async fn submit(&self, command: WorkerCommand) -> Result<(), Stop> {
        let key = QueueKey::Model(self.model);
        let commands = &self.state.submission.commands;
        let (_, revision) = commands.submit_one(key, &Caller::Worker, Input::Worker(command), 0).await?;
        let store = self.state.durable.current().store;
        let mut state = self.state.durable.state.clone();
        let _ = tokio::time::timeout(SHOWN_WITHIN, state.reach(store, revision)).await;
        Ok(())
    }

    /// Returns an error once the migration is in another phase.
    fn check_exporting(&self, id: Uuid) -> Result<(), Stop> {
        let published = self.state.durable.current();
        let state = published.root.model_or_remains(&self.model);
        match state.and_then(|state| state.migration()) {
            Some(Migration::Exporting(export)) if export.id == id => Ok(()),
            _ => Err(Stop::Over),
        }
    }
}
