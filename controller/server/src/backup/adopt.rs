//! The store of a restored controller: another identity, raised numbers, and a place in a new log.

use std::{fs::File, path::Path};

use futures_util::TryStreamExt as _;
use periapt_host_api::{Level, Revision, StoreId, Timestamp};
use periapt_log::LogHead;
use periapt_model::{Entity, changes::Changes};
use periapt_store::{Batch, Store as _, StoreError, StoredState, codec};
use periapt_store_rocksdb::RocksStore;

use super::{
    error::{BackupError, unwritable},
    raise::{amount, raised},
};
use crate::clock::{RandomSource as _, SystemRandomSource};

/// A restored directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredController {
    /// The new identity of the store.
    pub store: StoreId,
    /// The revision of the store.
    pub revision: Revision,
}

/// The log of a restored controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredLog {
    /// None: the controller is alone, with a store of its own.
    None,
    /// A new one with the identity of the restored store, which begins after its revision. The caller makes it.
    New,
}

/// Gives a copied store a new identity, and raises its numbers by the time since the copy was made. Fails if an entity does.
pub(super) async fn adopt(
    directory: &Path,
    copied_at: Timestamp,
    log: RestoredLog,
    check: impl Fn(&Entity) -> Result<(), BackupError>,
) -> Result<RestoredController, BackupError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(unwritable(directory))?;
    let id = StoreId(uuid::Builder::from_random_bytes(SystemRandomSource.seed()).into_uuid());
    let store = RocksStore::adopt(directory, id).await?;
    let StoredState { revision: head, note: _, mut chunks } = store.load().await?;
    let damaged = |error: codec::CodecError| StoreError::Damaged(error.to_string());
    let now = Timestamp::now();
    let amount = amount(copied_at, now);
    let (mut level, mut changes) = (Level::FIRST, Changes::default());
    while let Some(chunk) = chunks.try_next().await? {
        let kept = codec::entities(chunk).map_err(damaged)?;
        for (_, entity) in &kept {
            check(entity)?;
            if let Entity::Controller(controller) = entity {
                level = controller.level;
            }
        }
        changes.puts.extend(raised(&kept, amount).puts);
    }
    let writes = codec::Writes::of(&changes).map_err(damaged)?;
    let note = match log {
        RestoredLog::None => None,
        RestoredLog::New => {
            Some(LogHead::restored(id, Revision(head.0.saturating_add(1)), now, level).encode())
        }
    };
    let revision = store.commit(Batch { note, ..codec::batch(head, [writes]) }).await?;
    Ok(RestoredController { store: id, revision })
}
