//! Why a call was refused.

use serde::Serialize;

/// A refused call. The variants are those of the contract (`charm.wit`); the texts are what Juju's hook tools
/// say, without the `ERROR ` in front, because charms match on them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum CallError {
    /// The arguments make no sense; the only kind that a hook tool tells by exit code 2.
    #[error("{0}")]
    InvalidArgument(String),
    /// The thing named does not exist, or is not this unit's.
    #[error("{0}")]
    NotFound(String),
    /// The thing exists, and this unit may not touch it.
    #[error("{0}")]
    PermissionDenied(String),
    /// Only the leader of the application may do this.
    #[error("{0}")]
    NotLeader(String),
    /// It collides with something that is there.
    #[error("{0}")]
    Conflict(String),
    /// The thing to be made is there already.
    #[error("{0}")]
    AlreadyExists(String),
    /// A bound of the sandbox would be exceeded; the text names it with its number.
    #[error("{0}")]
    LimitExceeded(String),
    /// The charm declares this ability, and the operator has not granted it.
    #[error("{0}")]
    NotGranted(String),
    /// It exists and cannot be used yet.
    #[error("{0}")]
    NotReady(String),
    /// It cannot be answered now; the same call may succeed later.
    #[error("{0}")]
    TryAgain(String),
    /// The call has no meaning in the present hook.
    #[error("{0}")]
    WrongContext(String),
    /// Known to Juju, not offered in the sandbox.
    #[error("{0}")]
    NotSupported(String),
    /// Anything else that went wrong while running.
    #[error("{0}")]
    Failed(String),
}

impl CallError {
    /// What a hook tool that ends with this error exits with (T-1).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::InvalidArgument(_) => 2,
            _ => 1,
        }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::InvalidArgument(text.into())
    }

    pub(crate) fn denied() -> Self {
        // It does not tell whether the thing exists.
        Self::PermissionDenied("permission denied".to_owned())
    }
}
