//! Users, sessions and grants.

use periapt_host_api::{
    ErrorCode,
    access::{ControllerAccess, ModelAccess},
    audit::{AuditEntry, AuditOutcome, AuditedRequest},
    user::{ExternalIdentity, SessionId, TokenScope},
};
use periapt_model::changes::RecordBody;
use periapt_model::entity::{AuditHead, ModelGrant, PasswordHash, Registration, Session, SessionKind, User};
use uuid::Uuid;

use super::{MODEL, Named, awkward_text, digest, every, parse, time};

const USER: Uuid = Uuid::from_u128(0x0190_a7c4_5b1e_7d30_8c52_4f6e_9a01_b2d5);

pub(crate) fn users() -> Named<User> {
    let registered = User {
        name: parse("jane"),
        uuid: USER,
        display_name: awkward_text(),
        access: Some(ControllerAccess::Superuser),
        disabled: false,
        password: Some(PasswordHash("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".into())),
        registration: None,
        created_by: parse("admin"),
        created_at: time(70),
        last_login: Some(time(71)),
        identity: None,
    };
    let invited = User {
        name: parse("joe"),
        uuid: USER,
        display_name: "Joe".into(),
        access: Some(ControllerAccess::Login),
        disabled: false,
        password: None,
        registration: Some(Registration { token: digest("registration"), expires_at: time(72) }),
        created_by: parse("admin"),
        created_at: time(70),
        last_login: None,
        identity: None,
    };
    let external = User {
        name: parse("jane@example.com"),
        registration: None,
        identity: Some(ExternalIdentity {
            issuer: "https://issuer.example".into(),
            subject: "248289761001".into(),
        }),
        ..invited.clone()
    };
    let disabled = User { access: None, disabled: true, ..invited.clone() };
    vec![("registered", registered), ("invited", invited), ("disabled", disabled), ("external", external)]
}

pub(crate) fn sessions() -> Named<Session> {
    let kinds = every!(SessionKind {
        "login": SessionKind::Login => SessionKind::Login,
        "api": SessionKind::Api { .. } => SessionKind::Api {
            name: "ci".into(),
            scope: TokenScope { access: ModelAccess::Write, models: vec![MODEL] },
        },
    });
    let session = |kind| Session {
        token: digest("token"),
        user: parse("jane"),
        user_uuid: USER,
        kind,
        address: "192.0.2.7".into(),
        created_at: time(73),
        expires_at: time(74),
    };
    kinds.into_iter().map(|(name, kind)| (name, session(kind))).collect()
}

pub(crate) fn model_grants() -> Named<ModelGrant> {
    vec![("read", ModelGrant { user: parse("jane"), user_uuid: USER, access: ModelAccess::Read })]
}

pub(crate) fn audit_heads() -> Named<AuditHead> {
    vec![("newest", AuditHead { log: 0, number: 7, digest: digest("entry") })]
}

pub(crate) fn audited() -> Named<RecordBody> {
    let outcomes = every!(AuditOutcome {
        "done": AuditOutcome::Done => AuditOutcome::Done,
        "refused": AuditOutcome::Refused(_) => AuditOutcome::Refused(ErrorCode::PermissionDenied),
    });
    let entry = |outcome| {
        let request = AuditedRequest {
            at: time(75),
            user: Some(parse("jane")),
            session: Some(SessionId::of(&digest("token"))),
            address: "192.0.2.7".into(),
            act: "grant-model".into(),
            subject: format!("model {MODEL}, user joe, read"),
            outcome,
        };
        RecordBody::Audit(Box::new(AuditEntry::after(Some((6, digest("before"))), request)))
    };
    outcomes.into_iter().map(|(name, outcome)| (name, entry(outcome))).collect()
}
