//! The check that the log still has what this controller has applied. An etcd that was restored from an earlier snapshot
//! has the log's id and an earlier end.

use periapt_host_api::{Digest, Revision};
use periapt_log::{LogError, Term};

use super::{Replica, ReplicaError};

impl Replica {
    /// Refuses a log that ends before this controller's own end, or has another entry there. If the entry was trimmed, the
    /// next one tells whether it follows.
    pub(super) async fn check_history(&self) -> Result<(), ReplicaError> {
        let applied = self.head.position;
        // No entry was applied yet: a restored store begins at its own revision.
        if self.head.term == Term(0) {
            return Ok(());
        }
        let before = Revision(applied.0.saturating_sub(1));
        match self.log.read(before, 1).await {
            Ok(found) => match found.first() {
                Some(last) if Digest::of(&last.bytes) == self.head.digest => Ok(()),
                Some(_) => Err(ReplicaError::OtherHistory(applied)),
                // The log may have grown since the answer.
                None => Err(ReplicaError::SetBack { applied, end: self.log.end().await?.min(before) }),
            },
            Err(LogError::Trimmed(_)) => {
                let end = self.log.end().await?;
                if end < applied { Err(ReplicaError::SetBack { applied, end }) } else { Ok(()) }
            }
            Err(failure) => Err(failure.into()),
        }
    }
}
