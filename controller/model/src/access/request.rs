//! The check of a request before anything else: the right that it needs, and the caller's.

use std::sync::Arc;

use periapt_host_api::{
    ModelUuid, Refusal,
    command::{Caller, Command, ControllerCommand},
    egress::WORKLOAD_EGRESS,
    exec,
    user::TokenScope,
};

use super::{
    check::{Subject, denied, is_allowed, require},
    command::{right_of_command, right_of_controller_command},
    scope::scope_admits,
    table::Right,
};
use crate::{
    input::{IdentityCommand, Input},
    migration::status::moved_refusal,
    offer,
    root::{ModelState, Root},
};

/// Returns the right that a request needs, and the model that it is about, if it is about one.
pub(crate) fn right_of(input: &Input) -> (Right, Option<ModelUuid>) {
    match input {
        // As in Juju, a script needs more than an action that the charm declares. A program in a container does not:
        // who may write to the model may deploy a charm that runs the same there.
        Input::Model(model, Command::EnqueueOperation(request))
            if request.action == exec::ACTION && !exec::names_container(&request.parameters) =>
        {
            (Right::AdministerModel, Some(*model))
        }
        // What workloads may reach is no matter of those who only change the model.
        Input::Model(model, command) if command.changes_key(WORKLOAD_EGRESS) => {
            (Right::AdministerModel, Some(*model))
        }
        Input::Model(model, command) => (right_of_command(command), Some(*model)),
        Input::Controller(command) => {
            let model = match command {
                ControllerCommand::DestroyModel { model, .. } => Some(*model),
                _ => None,
            };
            (right_of_controller_command(command), model)
        }
        Input::Identity(command) => (right_of_identity(command), None),
        Input::UploadCharm(_) | Input::UploadResource(_) => (Right::Upload, None),
        Input::Backup { .. } => (Right::BackUp, None),
        Input::Register(..) => (Right::ActAsAgent, None),
        Input::Join { .. } => (Right::JoinAgent, None),
        Input::Runner(model, _) => (Right::ActAsRunner, Some(*model)),
        Input::Worker(_) | Input::Audit(_) => (Right::Work, None),
    }
}

/// Returns true if the scope of an API token admits a request. A request about an offer is about the offer's model, too.
pub fn scope_admits_request(root: &Root, caller: &Caller, scope: &TokenScope, input: &Input) -> bool {
    let (right, model) = right_of(input);
    let offer = match input {
        Input::Controller(
            ControllerCommand::GrantOffer { offer, .. } | ControllerCommand::RevokeOffer { offer, .. },
        ) => Some((right, offer)),
        Input::Model(_, Command::Consume { offer, .. }) => Some((Right::FindOffer, offer)),
        _ => None,
    };
    let offer = offer.and_then(|(right, url)| Some((right, offer::model_of_url(root, caller, url)?)));
    scope_admits(scope, right, model.as_ref())
        && offer.is_none_or(|(right, state)| scope_admits(scope, right, Some(&state.model().uuid)))
}

fn right_of_identity(command: &IdentityCommand) -> Right {
    match command {
        IdentityCommand::AddUser { .. } | IdentityCommand::ResetPassword { .. } => Right::ManageUsers,
        IdentityCommand::SetPassword { .. } => Right::ManageSessions,
        IdentityCommand::Register { .. }
        | IdentityCommand::LogIn { .. }
        | IdentityCommand::LogInAtIssuer { .. } => Right::LogIn,
        IdentityCommand::OpenSession { .. } => Right::OpenOwnSession,
    }
}

/// Refuses a request that the caller may not send. What the caller may not see is refused as what does not exist.
pub(crate) fn admit(root: &Root, caller: &Caller, input: &Input) -> Result<(), Refusal> {
    match input {
        Input::Controller(command) => admit_controller_command(root, caller, command),
        Input::Model(model, _) => {
            // An agent gets the same answer for every model.
            if !matches!(caller, Caller::User(_)) {
                return Err(denied());
            }
            require(root, caller, right_of(input).0, Subject::Model(visible_model(root, caller, model)?))
        }
        Input::UploadCharm(_) | Input::UploadResource(_) => {
            require(root, caller, Right::Upload, Subject::Controller)
        }
        Input::Backup { .. } => require(root, caller, Right::BackUp, Subject::Controller),
        Input::Identity(command) => admit_identity(root, caller, command),
        Input::Register(agent, _) => require(root, caller, Right::ActAsAgent, Subject::Agent(agent)),
        Input::Join { agent, .. } => require(root, caller, Right::JoinAgent, Subject::Agent(agent)),
        Input::Runner(model, _) => {
            let Caller::Runner { agent, model: own } = caller else { return Err(denied()) };
            if own != model {
                return Err(denied());
            }
            match root.model_or_remains(model) {
                Some(state) => require(root, caller, Right::ActAsRunner, Subject::Runner(agent, state)),
                None => Err(unknown_model(model)),
            }
        }
        Input::Worker(_) | Input::Audit(_) => require(root, caller, Right::Work, Subject::Controller),
    }
}

fn admit_controller_command(
    root: &Root,
    caller: &Caller,
    command: &ControllerCommand,
) -> Result<(), Refusal> {
    let right = right_of_controller_command(command);
    match command {
        ControllerCommand::DestroyModel { model, .. } => {
            require(root, caller, right, Subject::Model(visible_model(root, caller, model)?))
        }
        ControllerCommand::GrantOffer { offer: url, .. }
        | ControllerCommand::RevokeOffer { offer: url, .. } => {
            let (state, offer) = offer::visible_offer(root, caller, url)?;
            require(root, caller, right, Subject::Offer(state, offer))
        }
        ControllerCommand::CloseSession { session } => {
            let unknown = || Refusal::not_found(format!("session {session} not found"));
            let user = &root.session_with(session).ok_or_else(unknown)?.user;
            match is_allowed(root, caller, right, Subject::User(user)) {
                true => Ok(()),
                false => Err(unknown()),
            }
        }
        ControllerCommand::Migrate { .. }
        | ControllerCommand::AbortMigration { .. }
        | ControllerCommand::ForgetMigration { .. }
        | ControllerCommand::BeginImport { .. }
        | ControllerCommand::ImportPage(_)
        | ControllerCommand::HoldImport { .. }
        | ControllerCommand::ActivateImport { .. }
        | ControllerCommand::AbortImport { .. }
        | ControllerCommand::AddModel { .. }
        | ControllerCommand::SetModelDefaults { .. }
        | ControllerCommand::Keep(_)
        | ControllerCommand::AdmitAgent(_)
        | ControllerCommand::AdmitPool(_)
        | ControllerCommand::ClosePool { .. }
        | ControllerCommand::RemoveAgent { .. }
        | ControllerCommand::RemoveController { .. }
        | ControllerCommand::SetProgram(_)
        | ControllerCommand::RemoveUser { .. }
        | ControllerCommand::DisableUser { .. }
        | ControllerCommand::EnableUser { .. }
        | ControllerCommand::GrantController { .. }
        | ControllerCommand::RevokeController { .. } => require(root, caller, right, Subject::Controller),
    }
}

fn admit_identity(root: &Root, caller: &Caller, command: &IdentityCommand) -> Result<(), Refusal> {
    let subject = match command {
        IdentityCommand::SetPassword { user, .. } => Subject::User(user),
        IdentityCommand::AddUser { .. }
        | IdentityCommand::ResetPassword { .. }
        | IdentityCommand::Register { .. }
        | IdentityCommand::LogIn { .. }
        | IdentityCommand::LogInAtIssuer { .. }
        | IdentityCommand::OpenSession { .. } => Subject::Controller,
    };
    require(root, caller, right_of_identity(command), subject)
}

/// Returns a model that a caller may see.
///
/// # Errors
/// The model does not exist, or the caller may not know of it; the refusals are the same.
pub(crate) fn visible_model<'a>(
    root: &'a Root,
    caller: &Caller,
    model: &ModelUuid,
) -> Result<&'a Arc<ModelState>, Refusal> {
    let known = root.model_or_remains(model).filter(|state| is_visible(root, caller, state));
    if let Some(refusal) = known.and_then(|state| moved_refusal(state)) {
        return Err(refusal);
    }
    known.filter(|state| !state.is_hidden()).ok_or_else(|| unknown_model(model))
}

/// Returns true if a caller may see a model.
pub fn is_visible(root: &Root, caller: &Caller, state: &ModelState) -> bool {
    is_allowed(root, caller, Right::ReadModel, Subject::Model(state))
}

fn unknown_model(model: &ModelUuid) -> Refusal {
    Refusal::not_found(format!("model {model} not found"))
}
