//! Refusals: what was wrong, where, and what to do. Over HTTP they are `application/problem+json`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a refusal; stable, so that scripts and tests may rely on it. Each has a page in `docs/errors/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The request makes no sense.
    BadRequest,
    /// The caller may not, or the thing does not exist for it.
    PermissionDenied,
    /// No such thing.
    NotFound,
    /// It exists already.
    AlreadyExists,
    /// Several things fit; name one.
    Ambiguous,
    /// It is dying or dead.
    NotAlive,
    /// It collides with the present state.
    Conflict,
    /// A limit would be exceeded.
    QuotaExceeded,
    /// Only the leader may.
    NotLeader,
    /// The commit does not follow the unit's last one: drop it and resolve anew.
    Stale,
    /// The commit brings a charm that was replaced meanwhile: drop it, and resolve anew once the view shows the other.
    CharmReplaced,
    /// The charm cannot run here; the text says why.
    CharmRefused,
    /// Too many requests wait already: try again later.
    TooManyRequests,
    /// The store cannot be written now. Nothing of the request is seen; the text says whether it may still come to be.
    StorageUnavailable,
    /// It may work later.
    TryAgain,
    /// Not offered.
    NotSupported,
    /// A defect of the controller, or its host does not let it work: the message says which.
    Internal,
}

impl ErrorCode {
    /// All codes, for documentation and tests.
    pub const ALL: [Self; 17] = [
        Self::BadRequest,
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
        Self::TryAgain,
        Self::NotSupported,
        Self::Internal,
    ];

    /// The code as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad-request",
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
            Self::TryAgain => "try-again",
            Self::NotSupported => "not-supported",
            Self::Internal => "internal",
        }
    }

    /// Whether the refusal is about the controller's state now and not about the request: the same request may succeed
    /// later without anybody changing it.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::StorageUnavailable | Self::TooManyRequests | Self::TryAgain)
    }

    /// The HTTP status that goes with it.
    pub fn http_status(self) -> u16 {
        match self {
            Self::BadRequest | Self::Ambiguous | Self::CharmRefused => 400,
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
            Self::StorageUnavailable | Self::TryAgain => 503,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refusal: nothing of what was asked happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
#[serde(rename_all = "kebab-case")]
pub struct Refusal {
    /// The kind.
    pub code: ErrorCode,
    /// What was wrong, where, and what would be right; a lower-case fragment.
    pub message: String,
    /// The entity it is about, such as `unit mysql/0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl Refusal {
    /// A refusal about nothing in particular.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), subject: None }
    }

    /// Names the entity that it is about.
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
    /// The request makes no sense.
    bad_request => BadRequest,
    /// The caller may not.
    permission_denied => PermissionDenied,
    /// No such thing.
    not_found => NotFound,
    /// It exists already.
    already_exists => AlreadyExists,
    /// It is dying or dead.
    not_alive => NotAlive,
    /// It collides with the present state.
    conflict => Conflict,
    /// The commit does not follow the unit's last one.
    stale => Stale,
    /// The commit brings a charm that was replaced meanwhile.
    charm_replaced => CharmReplaced,
}

/// A refusal as it travels: RFC 9457, with the code as `type` and once more on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// `urn:periapt:error:CODE`
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
    /// The entity.
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
