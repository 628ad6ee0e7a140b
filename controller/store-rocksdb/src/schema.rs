//! Identity, schema version and head of a store.
//!
//! | key in `default` | value |
//! | --- | --- |
//! | `schema` | u32, big-endian |
//! | `store-id` | 16 bytes |
//! | `head` | u64, big-endian: the last commit's revision |

use periapt_host_api::{Revision, StoreId};
use periapt_store::StoreError;
use rocksdb::{DB, WriteBatch, WriteOptions};
use uuid::Uuid;

/// The newest schema that this program knows. A step to the next is added to [`upgrade`].
const SCHEMA: u32 = 1;

/// Reads the identity of an opened database, writes it into a new one, and upgrades an older one step by step.
pub(crate) fn prepare(db: &DB, fresh_id: StoreId) -> Result<StoreId, StoreError> {
    match read::<4>(db, "schema")?.map(u32::from_be_bytes) {
        None => {
            let mut writes = WriteBatch::default();
            writes.put("schema", SCHEMA.to_be_bytes());
            writes.put("store-id", fresh_id.0.as_bytes());
            put_head(&mut writes, Revision(0));
            let mut options = WriteOptions::default();
            options.set_sync(true);
            db.write_opt(writes, &options).map_err(|error| StoreError::Failed(error.to_string()))?;
        }
        Some(found) if found > SCHEMA => return Err(StoreError::TooNew { found, known: SCHEMA }),
        Some(found) => upgrade(found)?,
    }
    let id = read::<16>(db, "store-id")?.ok_or_else(|| StoreError::Damaged("it has no identity".into()))?;
    Ok(StoreId(Uuid::from_bytes(id)))
}

/// Brings a database from an older schema to the next, until it is at [`SCHEMA`].
fn upgrade(found: u32) -> Result<(), StoreError> {
    match found {
        SCHEMA => Ok(()),
        unknown => Err(StoreError::Damaged(format!("schema {unknown} was never released"))),
    }
}

/// The last commit's revision.
pub(crate) fn head(db: &DB) -> Result<Revision, StoreError> {
    let head = read::<8>(db, "head")?.ok_or_else(|| StoreError::Damaged("it has no head".into()))?;
    Ok(Revision(u64::from_be_bytes(head)))
}

/// Adds the new head to a commit.
pub(crate) fn put_head(writes: &mut WriteBatch, revision: Revision) {
    writes.put("head", revision.0.to_be_bytes());
}

fn read<const N: usize>(db: &DB, key: &str) -> Result<Option<[u8; N]>, StoreError> {
    let value = db.get(key).map_err(|error| StoreError::Damaged(error.to_string()))?;
    value
        .map(|bytes| {
            bytes.as_slice().try_into().map_err(|_| StoreError::Damaged(format!("{key} has a wrong size")))
        })
        .transpose()
}
