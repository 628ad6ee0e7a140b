//! The replacement of all entities by staged ones, which takes memory for one batch of them.
//!
//! Staged entities lie in `default`, where readers do not look, under `staged/` and their key. The synced write of
//! `replacing` decides. After a crash before it, nothing is replaced, and the next start deletes what is staged. After
//! a crash behind it, the next start makes the whole replacement once more. Meanwhile `schema` is [`REPLACING`], so
//! that a program that cannot finish it refuses the store.

use periapt_host_api::Revision;
use periapt_store::{StoreError, StoredEntity};
use rocksdb::{DB, Direction, IteratorMode, Snapshot, WriteBatch};

use super::{put_head, put_note, schema, write_synced};
use crate::{damaged, families::ENTITIES};

/// The schema of a store whose entities are being replaced, which no program has as its own.
const REPLACING: u32 = u32::MAX;

/// The prefix of staged keys, and the first key behind all of them.
const STAGED: &[u8] = b"staged/";
const BEHIND_STAGED: &[u8] = b"staged0";

const UNDER_WAY: &str = "replacing";

/// The bytes of writes after which a batch is written: about one chunk of a store that is read.
const BATCH_BYTES: usize = 1 << 20;

/// A replacement that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replacement {
    /// The schema that the store has otherwise.
    schema: u32,
    /// The head and the note that come with the staged entities.
    revision: Revision,
    note: Option<Vec<u8>>,
}

impl Replacement {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.schema.to_be_bytes().to_vec();
        bytes.extend(self.revision.0.to_be_bytes());
        bytes.push(self.note.is_some().into());
        bytes.extend(self.note.iter().flatten());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (schema, rest) = bytes.split_first_chunk::<4>()?;
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (has_note, note) = rest.split_first()?;
        Some(Self {
            schema: u32::from_be_bytes(*schema),
            revision: Revision(u64::from_be_bytes(*revision)),
            note: (*has_note != 0).then(|| note.to_vec()),
        })
    }

    /// Reads the replacement that is under way, if there is one.
    fn read(db: &DB) -> Result<Option<Self>, StoreError> {
        let invalid = || StoreError::Damaged("its replacement is invalid".into());
        let found = db.get(UNDER_WAY).map_err(damaged)?;
        found.map(|bytes| Self::decode(&bytes).ok_or_else(invalid)).transpose()
    }
}

/// Returns the schema that a store has, apart from a replacement that is under way.
pub(super) fn schema_behind(db: &DB, found: u32) -> Result<u32, StoreError> {
    if found != REPLACING {
        return Ok(found);
    }
    Ok(Replacement::read(db)?.map_or(found, |replacement| replacement.schema))
}

/// Returns the head that a store has once the replacement that is under way is finished; none if there is none.
pub(crate) fn next_head(db: &DB) -> Result<Option<Revision>, StoreError> {
    Ok(Replacement::read(db)?.map(|replacement| replacement.revision))
}

/// Refuses a moment in a replacement: the entities are of neither state.
pub(crate) fn refuse_under_way(snapshot: &Snapshot<'_>) -> Result<(), StoreError> {
    match snapshot.get(UNDER_WAY).map_err(damaged)? {
        Some(_) => Err(StoreError::Refused("it replaces its state, and is not read meanwhile".into())),
        None => Ok(()),
    }
}

/// Stages further entities, not durably.
pub(crate) fn stage(db: &DB, entities: Vec<StoredEntity>) -> Result<(), rocksdb::Error> {
    let mut writes = WriteBatch::default();
    for (key, value) in entities {
        writes.put([STAGED, key.as_slice()].concat(), value);
    }
    db.write(writes)
}

/// Deletes all staged entities, not durably.
pub(crate) fn unstage(db: &DB) -> Result<(), rocksdb::Error> {
    if staged(db).next().transpose()?.is_none() {
        return Ok(());
    }
    let mut writes = WriteBatch::default();
    writes.delete_range(STAGED, BEHIND_STAGED);
    db.write(writes)?;
    give_back(db);
    Ok(())
}

/// Replaces all entities by the staged ones, and the head and the note, durably.
pub(crate) fn replace(db: &DB, revision: Revision, note: Option<Vec<u8>>) -> Result<(), StoreError> {
    begin(db, revision, note)?;
    finish(db)
}

/// Decides on the replacement. Makes all that was staged durable.
fn begin(db: &DB, revision: Revision, note: Option<Vec<u8>>) -> Result<(), StoreError> {
    let schema = schema(db)?.ok_or_else(|| StoreError::Damaged("its schema is invalid".into()))?;
    let mut writes = WriteBatch::default();
    writes.put(UNDER_WAY, Replacement { schema, revision, note }.encode());
    writes.put("schema", REPLACING.to_be_bytes());
    write_synced(db, writes)
}

/// Makes the replacement that was decided on, from its beginning. Does nothing if there is none.
pub(super) fn finish(db: &DB) -> Result<(), StoreError> {
    let Some(Replacement { schema, revision, note }) = Replacement::read(db)? else { return Ok(()) };
    let mut writes = copy(db, usize::MAX)?;
    writes.delete_range(STAGED, BEHIND_STAGED);
    writes.delete(UNDER_WAY);
    put_head(&mut writes, revision);
    put_note(&mut writes, note.as_deref());
    writes.put("schema", schema.to_be_bytes());
    write_synced(db, writes)?;
    give_back(db);
    Ok(())
}

/// Gives back the space of staged entities that were deleted. RocksDB would keep them until some later compaction.
fn give_back(db: &DB) {
    // Whole files first, so that the compaction has little to read. The deletion stands whether or not this succeeds.
    if let Err(error) = db.delete_file_in_range(STAGED, BEHIND_STAGED) {
        tracing::debug!(%error, "files of staged entities were not deleted");
    }
    db.compact_range(Some(STAGED), Some(BEHIND_STAGED));
}

/// Deletes the former entities and copies staged ones, at most `limit`. Returns the last writes, which are not written.
fn copy(db: &DB, limit: usize) -> Result<WriteBatch, StoreError> {
    let missing = || StoreError::Damaged(format!("column family {ENTITIES} is missing"));
    let family = db.cf_handle(ENTITIES).ok_or_else(missing)?;
    let mut writes = WriteBatch::default();
    // RocksDB applies the operations of a batch in their order.
    if let Some(last) = db.iterator_cf(family, IteratorMode::End).next() {
        let (last, _) = last.map_err(damaged)?;
        writes.delete_range_cf(family, [].as_slice(), &*last);
        writes.delete_cf(family, &*last);
    }
    for row in staged(db).take(limit) {
        let (key, value) = row.map_err(damaged)?;
        writes.put_cf(family, key.strip_prefix(STAGED).unwrap_or(&key), value);
        if writes.size_in_bytes() >= BATCH_BYTES {
            let failed = |error: rocksdb::Error| StoreError::Unavailable(error.to_string());
            db.write(std::mem::take(&mut writes)).map_err(failed)?;
        }
    }
    Ok(writes)
}

/// The key and the value of a row.
type Row = (Box<[u8]>, Box<[u8]>);

/// Returns the rows of staged entities.
fn staged(db: &DB) -> impl Iterator<Item = Result<Row, rocksdb::Error>> + '_ {
    let rows = db.iterator(IteratorMode::From(STAGED, Direction::Forward));
    rows.take_while(|row| !matches!(row, Ok((key, _)) if !key.starts_with(STAGED)))
}

#[cfg(test)]
mod tests {
    use periapt_host_api::StoreId;
    use periapt_store::{LoadedState, Store as _};
    use tempfile::TempDir;

    use super::*;
    use crate::{RocksStore, database, schema::SCHEMA};

    const ID: StoreId = StoreId(uuid::Uuid::from_u128(7));

    /// Returns a state with this many entities of a KiB: some batches of a replacement.
    fn state(revision: u64, entities: usize) -> LoadedState {
        let byte = u8::try_from(revision).unwrap();
        let entity = |number: usize| (format!("{number:06}").into_bytes(), vec![byte; 1_024]);
        let note = Some(format!("note {revision}").into_bytes());
        LoadedState { revision: Revision(revision), entities: (0..entities).map(entity).collect(), note }
    }

    /// Returns the directory of a store with a state and with staged entities of another one.
    async fn with_staged(before: &LoadedState, after: &LoadedState) -> TempDir {
        let directory = TempDir::new().unwrap();
        let store = RocksStore::open(directory.path(), ID).await.unwrap();
        store.replace(before.clone()).await.unwrap();
        store.stage(after.entities.clone()).await.unwrap();
        directory
    }

    /// Opens a store, and returns its state and the number of its staged entities.
    async fn opened(directory: &TempDir) -> (LoadedState, usize) {
        let store = RocksStore::open(directory.path(), ID).await.unwrap();
        let state = store.load().await.unwrap().whole().await.unwrap();
        (state, staged(&store.inner.db).count())
    }

    #[tokio::test]
    async fn a_crash_before_the_decision_leaves_the_state_and_nothing_staged() {
        let (before, after) = (state(1, 3_000), state(2, 4_000));
        let directory = with_staged(&before, &after).await;
        assert_eq!(opened(&directory).await, (before, 0));
    }

    #[tokio::test]
    async fn a_crash_after_the_decision_leaves_the_whole_other_state_wherever_it_comes() {
        // More entities than before, fewer, and none.
        for (had, has) in [(3_000, 4_000), (4_000, 3_000), (10, 0), (0, 10)] {
            for copied in [None, Some(0), Some(1), Some(1_500), Some(usize::MAX)] {
                let (before, after) = (state(1, had), state(2, has));
                let directory = with_staged(&before, &after).await;
                let db = database::open(directory.path()).unwrap();
                begin(&db, after.revision, after.note.clone()).unwrap();
                assert_eq!(next_head(&db).unwrap(), Some(after.revision));
                let refused = refuse_under_way(&db.snapshot());
                assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
                if let Some(copied) = copied {
                    let rest = copy(&db, copied).unwrap();
                    db.write(rest).unwrap();
                }
                drop(db);
                assert_eq!(opened(&directory).await, (after.clone(), 0), "{had}, {has}, {copied:?}");
                assert_eq!(opened(&directory).await, (after, 0), "once more");
                let db = database::open(directory.path()).unwrap();
                assert_eq!((schema(&db).unwrap(), next_head(&db).unwrap()), (Some(SCHEMA), None));
            }
        }
    }

    #[tokio::test]
    async fn a_replacement_under_way_of_a_newer_schema_is_refused() {
        let (before, after) = (state(1, 10), state(2, 10));
        let directory = with_staged(&before, &after).await;
        let newer = SCHEMA + 1;
        let db = database::open(directory.path()).unwrap();
        db.put("schema", newer.to_be_bytes()).unwrap();
        begin(&db, after.revision, after.note.clone()).unwrap();
        drop(db);
        let refused = RocksStore::open(directory.path(), ID).await;
        assert!(matches!(refused, Err(StoreError::TooNew { found, .. }) if found == newer), "{refused:?}");
    }

    #[test]
    fn a_replacement_is_read_back_and_a_damaged_one_is_none() {
        for note in [None, Some(Vec::new()), Some(b"note".to_vec())] {
            let replacement = Replacement { schema: 2, revision: Revision(7), note };
            assert_eq!(Replacement::decode(&replacement.encode()), Some(replacement));
        }
        assert_eq!(Replacement::decode(&[0; 12]), None);
    }
}
