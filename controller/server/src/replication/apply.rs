//! The application of entries that another controller's writer appended.

use periapt_host_api::Revision;
use periapt_log::{Announcement, Content, Entry, EntryError, LogHead, StoredEntry};
use periapt_model::{EntityKey, Root};
use periapt_store::{StoreError, codec};
use tokio::time::Instant;

use super::RecentEntries;
use crate::{
    published::{Published, Weight},
    writer::Writer,
};

/// The reason why an entry could not be applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// The entry cannot be read, or does not follow.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The entry's content cannot be read.
    #[error("the entry at {0} of the log cannot be applied: {1}")]
    Content(Revision, codec::CodecError),
    /// The entry is of a controller with other keys.
    #[error(
        "controller {member:?} of this log has other keys than this one: remove this one's data directory, and let it \
         join with a token"
    )]
    OtherKeys {
        /// The other controller.
        member: String,
    },
    /// The controller that leads keeps blobs elsewhere.
    #[error(
        "controller {member:?} leads and keeps blobs in {theirs}, this one in {own}: start all controllers of a log with \
         the same --blobs"
    )]
    OtherBlobs {
        /// The other controller.
        member: String,
        /// The place of its blobs.
        theirs: String,
        /// The place of this controller's.
        own: String,
    },
    /// The store of this controller failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refuses a controller that leads and has other keys: it would give agents certificates that this one refuses, and seal
/// secrets that this one cannot open.
pub(super) fn check_keys(own: &Announcement, leads: &Announcement) -> Result<(), ApplyError> {
    match (own.keys, leads.keys) {
        (Some(own), Some(theirs)) if own != theirs => {
            Err(ApplyError::OtherKeys { member: leads.member.clone() })
        }
        _ => Ok(()),
    }
}

/// Refuses a controller that leads and keeps blobs elsewhere: one of them would acknowledge blobs that the other lacks.
pub(super) fn check_blobs(own: &Announcement, leads: &Announcement) -> Result<(), ApplyError> {
    let shown = |place: &str| match place {
        "" => "the directories of the controllers".to_owned(),
        place => place.to_owned(),
    };
    match (&own.blobs, &leads.blobs) {
        (Some(own), Some(theirs)) if own != theirs => {
            let member = leads.member.clone();
            Err(ApplyError::OtherBlobs { member, theirs: shown(theirs), own: shown(own) })
        }
        _ => Ok(()),
    }
}

/// Applies one entry to the store of a writer that does not lead, and publishes the state after it.
pub(crate) async fn apply(
    writer: &Writer,
    own: &Announcement,
    head: &LogHead,
    recent: &RecentEntries,
    StoredEntry { position, bytes }: StoredEntry,
) -> Result<LogHead, ApplyError> {
    let entry = Entry::decode(position, &bytes)?;
    let next = head.after(position, &entry, &bytes)?;
    if let Content::Term(leads) = &entry.content {
        check_keys(own, leads)?;
    }
    let batch = entry.into_batch(position, &next);
    let changes = codec::writes(&batch).map_err(|error| ApplyError::Content(position, error))?;
    writer.growth.note(&batch.records);
    let replaced = Weight::of(&batch);
    let store = writer.store.get().ok_or_else(|| StoreError::Failed("it is closed".into()))?;
    store.apply(batch).await?;
    recent.note(position, bytes.len());
    drop(store);

    let before = writer.publisher.current();
    let mut changed = before.changed.clone();
    for key in changes.puts.keys() {
        match key {
            EntityKey::InModel(model, _) => changed.note_model(*model, position),
            // No view shows it.
            EntityKey::AuditHead(_) | EntityKey::Answer(_) => {}
            _ => changed.note_outside(position),
        }
    }
    let root: Root = before.root.replay(&changes, position);
    let since = Instant::now();
    let published = Published { root, store: before.store, changed, problem: None, since };
    writer.publisher.publish(published, replaced);
    Ok(next)
}
