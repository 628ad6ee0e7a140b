//! The freeze: a model that migrates takes no commands, and one that has moved serves nothing but the note of where it is
//! (I48).

use periapt_host_api::{ErrorCode, ModelUuid, Refusal, agent::ControllerPlace, command::ControllerCommand};

use super::entity::{Failed, Migration};
use crate::{
    input::{Input, WorkerCommand},
    root::{ModelState, Root},
};

/// Refuses a request to a model that migrates or has moved.
///
/// # Errors
/// [`ErrorCode::Migrating`], [`ErrorCode::Moved`]
pub(crate) fn check(root: &Root, input: &Input) -> Result<(), Refusal> {
    check_agent(root, input)?;
    let model = match input {
        Input::Model(model, _)
        | Input::Runner(model, _)
        | Input::Controller(ControllerCommand::DestroyModel { model, .. }) => model,
        _ => return Ok(()),
    };
    let Some(state) = root.model_or_remains(model) else { return Ok(()) };
    if let (
        Input::Controller(ControllerCommand::DestroyModel { force: None, .. }),
        Some(Migration::Failed(Failed { untold: Some(export), .. })),
    ) = (input, state.migration())
    {
        let text = format!(
            "the controller at {} is yet to delete what came of the model; if it is lost for good, use `migrate --abort \
             --force` first",
            export.target.addresses.join(", ")
        );
        return Err(Refusal::new(ErrorCode::TryAgain, text).about(format!("model {model}")));
    }
    match state.migration() {
        // Agents are told by their assignments, and try again until then.
        Some(Migration::Moved(moved)) if !matches!(input, Input::Runner(..)) => {
            Err(has_moved(state.model().name.as_str(), &moved.target))
        }
        Some(migration) if migration.freezes() => Err(migrates(model)),
        _ => Ok(()),
    }
}

/// Refuses another key for an agent whose model is on its way, and the removal of an agent whose model is handed over: the
/// other controller would not learn of it. A removal before that ends the migration. Refuses both for a model that comes.
fn check_agent(root: &Root, input: &Input) -> Result<(), Refusal> {
    let (agent, is_removal) = match input {
        Input::Join { agent, .. } => (agent, false),
        Input::Controller(ControllerCommand::RemoveAgent { agent, .. }) => (agent, true),
        _ => return Ok(()),
    };
    if !root.is_going(agent) {
        return Ok(());
    }
    let concerns = |state: &ModelState| match state.migration() {
        Some(Migration::Exporting(_)) => !is_removal,
        Some(Migration::HandedOver(_)) => true,
        Some(Migration::Importing(import)) => import.given_up_at.is_none(),
        _ => false,
    };
    match root.models_at(agent).find(|(_, state)| concerns(state)) {
        Some((model, _)) => Err(migrates(model)),
        None => Ok(()),
    }
}

/// Returns true if the controller's own work is about a model that is frozen: then it is left alone.
pub(crate) fn holds_back(root: &Root, command: &WorkerCommand) -> bool {
    let is_of_migration = matches!(
        command,
        WorkerCommand::HandOverModel(..)
            | WorkerCommand::NoteMoved(..)
            | WorkerCommand::NoteMigrationFailed { .. }
            | WorkerCommand::NoteAbortTold(..)
            | WorkerCommand::EndMigration(_)
    );
    let state = command.model().and_then(|model| root.model_or_remains(&model));
    !is_of_migration && state.is_some_and(|state| state.is_frozen())
}

fn migrates(model: &ModelUuid) -> Refusal {
    let text = "the model is on its way to another controller; try again once it has arrived or stays";
    Refusal::new(ErrorCode::Migrating, text).about(format!("model {model}"))
}

/// Returns the refusal about a model that has moved.
pub(crate) fn has_moved(name: &str, target: &ControllerPlace) -> Refusal {
    let text = format!("model {name:?} has moved to the controller at {}", target.addresses.join(", "));
    Refusal::new(ErrorCode::Moved, text).about(format!("model {name}"))
}
