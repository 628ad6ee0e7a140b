//! Identity, schema version and head of a store.
//!
//! | key in `default` | value |
//! | --- | --- |
//! | `schema` | u32, big-endian |
//! | `store-id` | 16 bytes |
//! | `head` | u64, big-endian: the last commit's revision |
//! | `note` | the newest note of a commit |
//! | `upgrade` | the progress of the step to `schema`, while the step is under way |
//! | `staged/KEY` | an entity of a state that is to replace that of the store |
//! | `replacing` | the head, the note and the schema after the replacement, while it is under way |
//!
//! | schema | addition |
//! | --- | --- |
//! | 1 | `entities` and `records` |
//! | 2 | `sequences`: the name of every sequence that has records |

pub(crate) mod replacing;
mod sequences;
mod step;
mod upgrade;

use periapt_host_api::{Revision, StoreId};
use periapt_store::StoreError;
use rocksdb::{DB, IteratorMode, Snapshot, WriteBatch, WriteOptions};
use uuid::Uuid;

use crate::families::{ENTITIES, RECORDS};

/// The newest schema that this program knows: one more than the number of [`upgrade::STEPS`].
const SCHEMA: u32 = upgrade::STEPS.len() as u32 + 1;

const HEAD: &str = "head";

/// Returns the identity of an opened database; writes it into a new one, and upgrades an older one step by step.
pub(crate) fn prepare(db: &DB, fresh_id: StoreId) -> Result<StoreId, StoreError> {
    match schema(db)? {
        None => create(db, fresh_id)?,
        Some(0) => return Err(StoreError::Damaged("schema 0 was never released".into())),
        Some(_) => {
            refuse_unknown(db)?;
            replacing::finish(db)?;
            while upgrade::advance(db, upgrade::BATCH)? {}
        }
    }
    let id = read::<16>(db, "store-id")?.ok_or_else(|| StoreError::Damaged("it has no identity".into()))?;
    head(db)?;
    replacing::unstage(db).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(StoreId(Uuid::from_bytes(id)))
}

/// Refuses a database of a newer program or of another one.
pub(crate) fn refuse_unknown(db: &DB) -> Result<(), StoreError> {
    let Some(found) = schema(db)? else { return refuse_content(db) };
    match replacing::schema_behind(db, found)? {
        found if found > SCHEMA => Err(StoreError::TooNew { found, known: SCHEMA }),
        _ => Ok(()),
    }
}

/// Refuses a database with rows but without a schema.
fn refuse_content(db: &DB) -> Result<(), StoreError> {
    // The default family has no handle if the caller named no families, as in a read-only open.
    let others = [ENTITIES, RECORDS].into_iter().filter_map(|name| db.cf_handle(name));
    let others = others.map(|family| db.iterator_cf(family, IteratorMode::Start));
    let first_rows = std::iter::once(db.iterator(IteratorMode::Start)).chain(others);
    match first_rows.flat_map(|mut rows| rows.next()).next().transpose() {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(StoreError::Foreign("it has content but no schema".into())),
        Err(error) => Err(StoreError::Damaged(error.to_string())),
    }
}

/// Writes the first rows of a new database. A crash before that leaves an empty database, which the next start fills.
fn create(db: &DB, fresh_id: StoreId) -> Result<(), StoreError> {
    refuse_content(db)?;
    let mut writes = WriteBatch::default();
    writes.put("schema", SCHEMA.to_be_bytes());
    writes.put("store-id", fresh_id.0.as_bytes());
    put_head(&mut writes, Revision(0));
    write_synced(db, writes)
}

/// Gives a database another identity, and removes its note: the note is about what the earlier identity stood for.
pub(crate) fn rename(db: &DB, id: StoreId) -> Result<(), StoreError> {
    let mut writes = WriteBatch::default();
    writes.put("store-id", id.0.as_bytes());
    put_note(&mut writes, None);
    write_synced(db, writes)
}

/// Returns the revision of the last commit.
pub(crate) fn head(db: &DB) -> Result<Revision, StoreError> {
    revision(db.get(HEAD))
}

/// Returns the revision of the last commit before a snapshot, and the newest note of that moment.
pub(crate) fn head_and_note(snapshot: &Snapshot<'_>) -> Result<(Revision, Option<Vec<u8>>), StoreError> {
    let note = snapshot.get("note").map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok((revision(snapshot.get(HEAD))?, note))
}

/// Reads the value under `head`.
fn revision(head: Result<Option<Vec<u8>>, rocksdb::Error>) -> Result<Revision, StoreError> {
    let head = sized::<8>(HEAD, head)?.ok_or_else(|| StoreError::Damaged("it has no head".into()))?;
    Ok(Revision(u64::from_be_bytes(head)))
}

/// Adds the new head to a commit.
pub(crate) fn put_head(writes: &mut WriteBatch, revision: Revision) {
    writes.put(HEAD, revision.0.to_be_bytes());
}

/// Adds a note to a commit, or deletes the earlier one.
pub(crate) fn put_note(writes: &mut WriteBatch, note: Option<&[u8]>) {
    match note {
        Some(note) => writes.put("note", note),
        None => writes.delete("note"),
    }
}

fn schema(db: &DB) -> Result<Option<u32>, StoreError> {
    Ok(read::<4>(db, "schema")?.map(u32::from_be_bytes))
}

fn write_synced(db: &DB, writes: WriteBatch) -> Result<(), StoreError> {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    db.write_opt(writes, &options).map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn read<const N: usize>(db: &DB, key: &str) -> Result<Option<[u8; N]>, StoreError> {
    sized(key, db.get(key))
}

/// Checks that the value under a key has a size.
fn sized<const N: usize>(
    key: &str,
    value: Result<Option<Vec<u8>>, rocksdb::Error>,
) -> Result<Option<[u8; N]>, StoreError> {
    value
        .map_err(|error| StoreError::Damaged(error.to_string()))?
        .map(|bytes| {
            bytes.as_slice().try_into().map_err(|_| StoreError::Damaged(format!("{key} has a wrong size")))
        })
        .transpose()
}
