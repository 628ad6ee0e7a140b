//! The entry of one request. It names the command and its subject, and holds nothing of the command's content, which may
//! be secret, but for what is run in a container.

use periapt_host_api::{
    ModelUuid, UserName,
    agent::PoolAdmission,
    audit::{AuditEntry, AuditOutcome, AuditedRequest},
    command::{Caller, Command, ControllerCommand},
    excerpt,
    user::{ExternalIdentity, SessionId},
};
use serde::{Deserialize, Serialize};

use super::{entity::AuditHead, operation};
use crate::{
    access::command::{name_of_command, name_of_controller_command},
    entity::EntityKey,
    input::{Environment, IdentityCommand, Input, Output},
    root::{
        Root,
        changes::{Changes, RecordAppend, RecordBody},
    },
};

/// The origin of a user's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Origin {
    /// The session that proves the user; none for the operator on the controller's own host.
    pub session: Option<SessionId>,
    /// The address that the request came from.
    pub address: String,
}

/// Returns a request as the audit log keeps it.
pub fn audited(
    (caller, origin): (&Caller, &Origin),
    input: &Input,
    result: Result<&Output, &periapt_host_api::Refusal>,
    env: &Environment,
) -> AuditedRequest {
    let (act, subject) = named(input);
    AuditedRequest {
        at: env.now,
        user: user_of(caller, input, result.ok()),
        session: origin.session.clone(),
        address: origin.address.clone(),
        act,
        subject,
        outcome: match result {
            Ok(_) => AuditOutcome::Done,
            Err(refusal) => AuditOutcome::Refused(refusal.code),
        },
    }
}

/// Returns the changes that append a request to the audit log: its entry, and the log's new end.
pub fn audit(root: &Root, request: AuditedRequest) -> Changes {
    let at = request.at;
    let before = root.audit_head().map(|head| (head.number, head.digest));
    let entry = AuditEntry::after(before, request);
    let head = AuditHead { log: 0, number: entry.number, digest: entry.digest };
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::AuditHead(0), Some(head.into()));
    changes.records.push(RecordAppend {
        model: ModelUuid(uuid::Uuid::nil()),
        entity: String::new(),
        at,
        body: RecordBody::Audit(Box::new(entry)),
    });
    changes
}

fn user_of(caller: &Caller, input: &Input, output: Option<&Output>) -> Option<UserName> {
    match (caller, input, output) {
        (Caller::User(user), ..) => Some(user.clone()),
        (_, Input::Identity(IdentityCommand::LogIn { user, .. }), _) => Some(user.clone()),
        (_, Input::Identity(IdentityCommand::LogInAtIssuer { login, .. }), _) => Some(login.user.clone()),
        (_, _, Some(Output::Session(user))) => Some(user.clone()),
        _ => None,
    }
}

/// Returns the names of a request's act and subject.
fn named(input: &Input) -> (String, String) {
    match input {
        Input::Controller(command) => {
            (name_in_requests(name_of_controller_command(command)), subject_of(command))
        }
        Input::Model(model, command) => {
            let act = name_in_requests(name_of_command(command));
            let subject = match command {
                Command::GrantModel { user, access } | Command::RevokeModel { user, access } => {
                    format!("model {model}, user {user}, {access}")
                }
                Command::EnqueueOperation(request) => operation::subject(model, request),
                _ => format!("model {model}"),
            };
            (act, subject)
        }
        Input::Identity(command) => identity(command),
        Input::UploadCharm(charm) => ("upload-charm".to_owned(), format!("charm {}", charm.digest)),
        Input::UploadResource(content) => {
            ("upload-resource".to_owned(), format!("resource {}", content.digest))
        }
        Input::Backup { keys } => {
            ("create-backup".to_owned(), if *keys { "with keys" } else { "without keys" }.to_owned())
        }
        Input::Register(agent, _) => ("register-agent".to_owned(), format!("agent {agent}")),
        Input::Join { agent, .. } => ("join-agent".to_owned(), format!("agent {agent}")),
        Input::Runner(model, _) => ("runner".to_owned(), format!("model {model}")),
        Input::Worker(_) | Input::Audit(_) => ("work".to_owned(), String::new()),
    }
}

fn subject_of(command: &ControllerCommand) -> String {
    match command {
        ControllerCommand::AddModel { name, .. } => format!("model {name}"),
        ControllerCommand::DestroyModel { model, .. } => format!("model {model}"),
        ControllerCommand::Migrate { model, target } => {
            format!("model {model}, controller {}", target.place.controller)
        }
        ControllerCommand::BeginImport { plan, .. } => {
            let model = plan.model.pointer("/model/uuid").and_then(serde_json::Value::as_str);
            format!("model {}, controller {}", excerpt::shortened(model.unwrap_or_default()), plan.source)
        }
        ControllerCommand::ImportPage(page) => format!("model {}", page.model),
        ControllerCommand::AbortMigration { model, .. }
        | ControllerCommand::ForgetMigration { model, .. }
        | ControllerCommand::HoldImport { model, .. }
        | ControllerCommand::ActivateImport { model, .. }
        | ControllerCommand::AbortImport { model, .. } => format!("model {model}"),
        ControllerCommand::SetModelDefaults { .. } | ControllerCommand::Keep(_) => String::new(),
        ControllerCommand::AdmitAgent(admission) => format!("agent {}", admission.agent),
        ControllerCommand::AdmitPool(PoolAdmission { pool, uses, .. }) => {
            format!("pool {pool}, {uses} agents")
        }
        ControllerCommand::ClosePool { pool } => format!("pool {pool}"),
        ControllerCommand::RemoveAgent { agent, .. } => format!("agent {agent}"),
        ControllerCommand::RemoveController { name } => format!("controller {}", excerpt::shortened(name)),
        ControllerCommand::SetProgram(offer) => format!("program {}", offer.digest),
        ControllerCommand::RemoveUser { user }
        | ControllerCommand::DisableUser { user }
        | ControllerCommand::EnableUser { user } => format!("user {user}"),
        ControllerCommand::GrantController { user, access }
        | ControllerCommand::RevokeController { user, access } => format!("user {user}, {access}"),
        ControllerCommand::GrantOffer { offer, user, access }
        | ControllerCommand::RevokeOffer { offer, user, access } => {
            format!("offer {offer}, user {user}, {access}")
        }
        ControllerCommand::CloseSession { session } => format!("session {session}"),
    }
}

fn identity(command: &IdentityCommand) -> (String, String) {
    let (act, subject) = match command {
        IdentityCommand::AddUser { name, .. } => ("add-user", format!("user {name}")),
        IdentityCommand::ResetPassword { user, .. } => ("reset-password", format!("user {user}")),
        IdentityCommand::SetPassword { user, .. } => ("set-password", format!("user {user}")),
        IdentityCommand::Register { session, .. } => {
            ("register", format!("session {}", SessionId::of(&session.token)))
        }
        IdentityCommand::LogIn { session, .. } => {
            ("log-in", format!("session {}", SessionId::of(&session.token)))
        }
        IdentityCommand::LogInAtIssuer { login, session } => {
            let ExternalIdentity { issuer, subject } = &login.identity;
            let session = SessionId::of(&session.token);
            ("log-in", format!("session {session}, account {subject} of {issuer}"))
        }
        IdentityCommand::OpenSession { session } => {
            ("open-session", format!("session {}", SessionId::of(&session.token)))
        }
    };
    (act.to_owned(), subject)
}

/// Returns the name of a command in requests: `AddModel` is `add-model`.
pub fn name_in_requests(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}
