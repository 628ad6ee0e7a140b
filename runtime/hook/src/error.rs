//! Errors of host calls.

use serde::{Deserialize, Serialize};

/// A refused call. The variants are those of the contract (`charm.wit`). The texts are those of Juju's hook
/// tools, without the leading `ERROR `, because charms match on them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum CallError {
    /// The arguments are invalid; the only kind for which a hook tool exits with code 2.
    #[error("{0}")]
    InvalidArgument(String),
    /// The named thing does not exist, or does not belong to this unit.
    #[error("{0}")]
    NotFound(String),
    /// The thing exists, and this unit may not use it.
    #[error("{0}")]
    PermissionDenied(String),
    /// The call is for the leader of the application alone.
    #[error("{0}")]
    NotLeader(String),
    /// The request conflicts with existing state.
    #[error("{0}")]
    Conflict(String),
    /// The thing to make exists already.
    #[error("{0}")]
    AlreadyExists(String),
    /// The call would exceed a bound of the sandbox; the text names the bound with its number.
    #[error("{0}")]
    LimitExceeded(String),
    /// The charm declares this capability, and the operator has not granted it.
    #[error("{0}")]
    NotGranted(String),
    /// The thing exists and is not ready for use.
    #[error("{0}")]
    NotReady(String),
    /// The host cannot answer now; the same call may succeed later.
    #[error("{0}")]
    TryAgain(String),
    /// The call has no meaning in the present hook.
    #[error("{0}")]
    WrongContext(String),
    /// The call is Juju's, and the sandbox does not support it.
    #[error("{0}")]
    NotSupported(String),
    /// Any other error at run time.
    #[error("{0}")]
    Failed(String),
}

impl CallError {
    /// Returns the exit code of a hook tool that ends with this error (T-1).
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
        // The text does not tell whether the thing exists.
        Self::PermissionDenied("permission denied".to_owned())
    }
}
