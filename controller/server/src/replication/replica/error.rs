//! The reasons why a controller neither follows nor leads.

use periapt_host_api::Revision;
use periapt_log::{EntryError, LogError};
use periapt_store::StoreError;

use crate::{
    replication::{SnapshotFailure, apply::ApplyError},
    writer::WriteError,
};

/// The beginning of the advice to the operator of an etcd that was set back.
const BEGIN_ANEW: &str =
    "stop all controllers, and begin a new set with 'bootstrap --restore' and the directory of the one";

/// The reason why a controller neither follows nor leads for a moment.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplicaError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Apply(ApplyError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the store's note cannot be read: {0}")]
    Note(EntryError),
    #[error("the log ended its stream")]
    Ended,
    #[error("no snapshot was taken: {0}")]
    Snapshot(#[from] SnapshotFailure),
    #[error(
        "this machine's clock is {difference} {other}: set the one of the two that is wrong, and start the controller again"
    )]
    Clock { difference: String, other: &'static str },
    #[error(
        "controller {0:?} was removed from those of its log: it joins again with a new token, in an empty directory; \
         `periapt kill-controller` removes what is left here"
    )]
    Removed(String),
    #[error("no controller leads that has the entries which the log does not have any more")]
    NoSource,
    #[error(
        "etcd was set back: the log ends at position {end}, and this controller has applied position {applied}; {advice} \
         that has applied the most",
        advice = BEGIN_ANEW
    )]
    SetBack { applied: Revision, end: Revision },
    #[error(
        "etcd was set back, and written again: at position {0} the log has another entry than this controller has \
         applied; {advice} whose state you keep",
        advice = BEGIN_ANEW
    )]
    OtherHistory(Revision),
}

impl From<ApplyError> for ReplicaError {
    fn from(error: ApplyError) -> Self {
        match error {
            // The entry before it, which this controller has applied, is another one.
            ApplyError::Entry(EntryError::OtherHistory(next)) => {
                Self::OtherHistory(Revision(next.0.saturating_sub(1)))
            }
            other => Self::Apply(other),
        }
    }
}

impl ReplicaError {
    /// Returns true if no later attempt can succeed.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Clock { .. }
                | Self::SetBack { .. }
                | Self::OtherHistory(_)
                | Self::Apply(ApplyError::OtherKeys { .. } | ApplyError::OtherBlobs { .. })
                | Self::Apply(ApplyError::Entry(EntryError::TooNew { .. }))
                | Self::Snapshot(SnapshotFailure::Entry(EntryError::TooNew { .. }))
        )
    }

    /// Returns the failure of the store, if it must be opened again.
    pub(super) fn of_store(&self) -> Option<StoreError> {
        match self {
            Self::Apply(ApplyError::Store(error))
            | Self::Write(WriteError::Store(error))
            | Self::Snapshot(SnapshotFailure::Store(error)) => Some(StoreError::Failed(error.to_string())),
            _ => None,
        }
    }
}
