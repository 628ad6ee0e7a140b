//! Removing the log that a bootstrap has begun, when the bootstrap is undone.

use etcd_client::{Compare, CompareOp, DeleteOptions, Txn, TxnOp};
use periapt_host_api::{Digest, Revision};
use periapt_log::{Announcement, Content, Entry, LogError};

use crate::{
    OpenError,
    answers::{number, values},
    open::without_quorum,
    read::SAFE_PAGE,
    shared::Shared,
    value::{decode_id, decode_leader, encode_id},
};

/// The attempts to find the log at rest. A leadership whose controller has ended may run out during one of them.
const ATTEMPTS: u32 = 5;

/// A log that a bootstrap has begun, and the only controller that may have written into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunLog {
    /// The position after which the log begins.
    pub after: Revision,
    /// The name of the controller, which has ended.
    pub member: String,
    /// The fingerprint of the controller's keys; none if it never had any.
    pub keys: Option<Digest>,
}

/// The reason why a begun log stays in etcd. Nothing was removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// Another controller has written there, or may have.
    #[error("{0}")]
    Shared(String),
    /// etcd or the log cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl From<LogError> for RemoveError {
    fn from(error: LogError) -> Self {
        Self::Open(error.into())
    }
}

impl BegunLog {
    /// Refuses the announcement of another controller.
    fn check(&self, announcement: &Announcement) -> Result<(), RemoveError> {
        if announcement.member == self.member && self.keys.is_some() && announcement.keys == self.keys {
            return Ok(());
        }
        Err(RemoveError::Shared(format!("controller {:?} has led it", announcement.member)))
    }
}

impl Shared {
    /// Removes the log, unless another controller has written into it.
    pub(crate) async fn remove(&self, begun: &BegunLog) -> Result<(), RemoveError> {
        for _ in 0..ATTEMPTS {
            let Some(revision) = self.check_begun(begun).await? else { return Ok(()) };
            if self.delete_unchanged(revision).await? {
                return Ok(());
            }
        }
        Err(RemoveError::Shared("another controller writes into it".to_owned()))
    }

    /// Checks all that the log has. Returns etcd's revision, up to which the controller alone has written it; none if
    /// there is no log.
    async fn check_begun(&self, begun: &BegunLog) -> Result<Option<i64>, RemoveError> {
        let found = self
            .call(0, |mut member| {
                let keys = [self.keys.id(), self.keys.leader(), self.keys.trimmed()];
                let read = Txn::new().and_then(keys.map(|key| TxnOp::get(key, None)));
                async move { member.kv.txn(read).await }
            })
            .await
            .map_err(without_quorum)?;
        let revision = found.header().map_or(0, etcd_client::ResponseHeader::revision);
        let mut found = values(&found).into_iter();
        let Some(id) = found.next().flatten() else { return Ok(None) };
        if decode_id(id.value()) != Ok(self.id) {
            return Err(RemoveError::Shared("another controller has begun one there".to_owned()));
        }
        if let Some(leader) = found.next().flatten() {
            begun.check(&decode_leader(leader.value())?.announcement)?;
        }
        if number("trimmed", found.next().flatten())? != begun.after.0 {
            return Err(RemoveError::Shared("entries of it were trimmed".to_owned()));
        }
        let mut last = begun.after.0;
        loop {
            let page = self.page(last, SAFE_PAGE).await?;
            if page.entries.is_empty() {
                return Ok(Some(revision));
            }
            for stored in page.entries {
                last = stored.position.0;
                let entry = Entry::decode(stored.position, &stored.bytes);
                let entry = entry.map_err(|error| RemoveError::Shared(error.to_string()))?;
                if let Content::Term(announcement) = &entry.content {
                    begun.check(announcement)?;
                }
            }
        }
    }

    /// Deletes all keys of the log, if none of them was written after a revision of etcd. Returns true if so.
    async fn delete_unchanged(&self, revision: i64) -> Result<bool, RemoveError> {
        let answer = self
            .call(0, |mut member| {
                let (id, shard) = (self.keys.id(), self.keys.shard());
                let next = revision.saturating_add(1);
                let delete = Txn::new()
                    .when([
                        Compare::value(id.clone(), CompareOp::Equal, encode_id(self.id)),
                        Compare::mod_revision(shard, CompareOp::Less, next).with_prefix(),
                    ])
                    .and_then([
                        TxnOp::delete(id, None),
                        TxnOp::delete(shard, Some(DeleteOptions::new().with_prefix())),
                    ]);
                async move { member.kv.txn(delete).await }
            })
            .await
            .map_err(without_quorum)?;
        Ok(answer.succeeded())
    }
}
