//! Refusals, which say what is wrong, where, and what to do. Over HTTP they are `application/problem+json`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a refusal. Codes are stable, so that scripts and tests may rely on them; each has a page in
/// `docs/errors/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The request is malformed or contradicts itself.
    BadRequest,
    /// The caller has no valid session, token or certificate.
    NotLoggedIn,
    /// The caller lacks the permission, or must not learn whether the entity exists.
    PermissionDenied,
    /// The entity does not exist.
    NotFound,
    /// The entity exists already.
    AlreadyExists,
    /// Several entities match; the request must name one.
    Ambiguous,
    /// The entity is dying or dead.
    NotAlive,
    /// The request conflicts with the present state.
    Conflict,
    /// The request would exceed a limit.
    QuotaExceeded,
    /// The request needs leadership.
    NotLeader,
    /// The commit does not follow the unit's last one. The runner drops it and resolves anew.
    Stale,
    /// The commit brings a charm that was replaced meanwhile. The runner drops it, and resolves anew once its view
    /// shows the other charm.
    CharmReplaced,
    /// The charm cannot run here; the message says why.
    CharmRefused,
    /// Too many requests are waiting; try again later.
    TooManyRequests,
    /// The controller cannot write its store now. The request had no effect.
    StorageUnavailable,
    /// The controller cannot tell yet if the request was carried out. The same request with the same id
    /// (`Periapt-Request-Id`) gets its answer later, and is carried out once.
    OutcomeUnknown,
    /// The request may succeed later.
    TryAgain,
    /// The model is on its way to another controller, and takes no commands until it has arrived or stays.
    Migrating,
    /// The model has moved to another controller; the message says where.
    Moved,
    /// Periapt does not support the request.
    NotSupported,
    /// A defect of the controller, or a failure of its host; the message says which.
    Internal,
}

impl ErrorCode {
    /// All codes, for documentation and tests.
    pub const ALL: [Self; 21] = [
        Self::BadRequest,
        Self::NotLoggedIn,
        Self::PermissionDenied,
        Self::NotFound,
        Self::AlreadyExists,
        Self::Ambiguous,
        Self::NotAlive,
        Self::Conflict,
        Self::QuotaExceeded,
        Self::NotLeader,
        Self::Stale,
        Self::CharmReplaced,
        Self::CharmRefused,
        Self::TooManyRequests,
        Self::StorageUnavailable,
        Self::OutcomeUnknown,
        Self::TryAgain,
        Self::Migrating,
        Self::Moved,
        Self::NotSupported,
        Self::Internal,
    ];

    /// Returns the code in its written form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
            Self::NotLoggedIn => "not-logged-in",
            Self::PermissionDenied => "permission-denied",
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::Ambiguous => "ambiguous",
            Self::NotAlive => "not-alive",
            Self::Conflict => "conflict",
            Self::QuotaExceeded => "quota-exceeded",
            Self::NotLeader => "not-leader",
            Self::Stale => "stale",
            Self::CharmReplaced => "charm-replaced",
            Self::CharmRefused => "charm-refused",
            Self::TooManyRequests => "too-many-requests",
            Self::StorageUnavailable => "storage-unavailable",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::TryAgain => "try-again",
            Self::Migrating => "migrating",
            Self::Moved => "moved",
            Self::NotSupported => "not-supported",
            Self::Internal => "internal",
        }
    }

    /// Returns true if the cause is the controller's present state, so that the same request may succeed later.
    pub fn is_temporary(self) -> bool {
        matches!(
            self,
            Self::StorageUnavailable
                | Self::OutcomeUnknown
                | Self::TooManyRequests
                | Self::TryAgain
                | Self::Migrating
        )
    }

    /// Returns the HTTP status of responses with the code.
    pub fn http_status(self) -> u16 {
        match self {
            Self::BadRequest | Self::Ambiguous | Self::CharmRefused => 400,
            Self::NotLoggedIn => 401,
            Self::PermissionDenied | Self::NotLeader => 403,
            Self::NotFound => 404,
            Self::AlreadyExists
            | Self::NotAlive
            | Self::Conflict
            | Self::Stale
            | Self::CharmReplaced
            | Self::QuotaExceeded => 409,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::NotSupported => 501,
            Self::Moved => 410,
            Self::StorageUnavailable | Self::OutcomeUnknown | Self::TryAgain | Self::Migrating => 503,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refusal: the request had no effect, but for the code [`ErrorCode::OutcomeUnknown`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
#[serde(rename_all = "kebab-case")]
pub struct Refusal {
    /// The kind of the refusal.
    pub code: ErrorCode,
    /// The fault, its place and the remedy, as a lower-case fragment.
    pub message: String,
    /// The entity that the refusal is about, such as `unit mysql/0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl Refusal {
    /// Creates a refusal without a subject.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), subject: None }
    }

    /// Sets the entity that the refusal is about.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

macro_rules! short_forms {
    ($($(#[$doc:meta])* $name:ident => $code:ident),* $(,)?) => {
        impl Refusal {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorCode::$code, message)
            })*
        }
    };
}

short_forms! {
    /// Refuses a request that is malformed or contradicts itself.
    bad_request => BadRequest,
    /// Refuses a caller that lacks the permission.
    permission_denied => PermissionDenied,
    /// Refuses because the entity does not exist.
    not_found => NotFound,
    /// Refuses because the entity exists already.
    already_exists => AlreadyExists,
    /// Refuses because the entity is dying or dead.
    not_alive => NotAlive,
    /// Refuses because the request conflicts with the present state.
    conflict => Conflict,
    /// Refuses a commit that does not follow the unit's last one.
    stale => Stale,
    /// Refuses a commit that brings a charm that was replaced meanwhile.
    charm_replaced => CharmReplaced,
}

/// A refusal in the form of RFC 9457, with the code inside `type` and in a member of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The type: `urn:periapt:error:CODE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The refusal's message.
    pub detail: String,
    /// The code.
    pub code: ErrorCode,
    /// The entity that the refusal is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            kind: format!("urn:periapt:error:{}", refusal.code),
            title: refusal.code.as_str().replace('-', " "),
            status: refusal.code.http_status(),
            detail: refusal.message,
            code: refusal.code,
            subject: refusal.subject,
        }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code, message: problem.detail, subject: problem.subject }
    }
}
