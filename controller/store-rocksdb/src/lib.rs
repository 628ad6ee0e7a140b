//! The embedded store: RocksDB in one directory, for one process at a time, with every commit synced.
//!
//! It has four column families: `default` holds the store's identity, schema and head; `entities` the model;
//! `records` the append-only rows; `sequences` the names of the sequences that have rows. A commit is one write batch
//! over all four, so it is atomic.

#[cfg(feature = "bare")]
mod baseline;
mod database;
mod families;
mod key;
mod load;
mod log_end;
mod schema;

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_host_api::{Revision, StoreId};
use periapt_store::{
    Batch, Order, Record, Retention, RetentionPolicy, Store, StoreError, StoredEntity, StoredState,
};
use rocksdb::{ColumnFamily, DB, Direction, IteratorMode, WriteBatch, WriteOptions};

#[cfg(feature = "bare")]
pub use baseline::BaselineDatabase;
use families::{ENTITIES, RECORDS, SEQUENCES};
use schema::replacing;

/// A [`Store`] in a directory of its own.
#[derive(Debug, Clone)]
pub struct RocksStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: DB,
    id: StoreId,
    /// Set once the outcome of a write is unknown: all later calls fail.
    failed: AtomicBool,
    /// Held from the read of a state to the write that depends on it: the head, or the emptiness of a sequence.
    writing: Mutex<()>,
    /// The time that the last commit took to write and sync, in nanoseconds; 0 before the first.
    sync_ns: AtomicU64,
}

/// The time at which a write is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// Before the call returns.
    Synced,
    /// With the next synced write or flush.
    Later,
}

impl RocksStore {
    /// Opens the store in a directory, or creates it with `fresh_id` as its identity.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it open, [`StoreError::TooNew`] and [`StoreError::Damaged`] if it
    /// cannot be read, [`StoreError::Unavailable`] if the disk fails. A store that is too new, or that lost files,
    /// stays unchanged.
    pub async fn open(directory: &Path, fresh_id: StoreId) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        blocking(move || Self::open_blocking(&directory, fresh_id)).await
    }

    fn open_blocking(directory: &Path, fresh_id: StoreId) -> Result<Self, StoreError> {
        let db = database::open(directory)?;
        let id = schema::prepare(&db, fresh_id).map_err(|error| database::at(directory, error))?;
        tracing::debug!(directory = %directory.display(), store = %id, "store opened");
        Ok(Self::of(db, id))
    }

    fn of(db: DB, id: StoreId) -> Self {
        let inner = Inner {
            db,
            id,
            failed: AtomicBool::new(false),
            writing: Mutex::new(()),
            sync_ns: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Opens a copy of a store as a store of its own: it gets another identity, and loses its note. Revisions of the two
    /// stores cannot be compared from then on.
    ///
    /// # Errors
    /// As [`RocksStore::open`]; [`StoreError::Foreign`] if the directory has no store.
    pub async fn adopt(directory: &Path, id: StoreId) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        blocking(move || {
            if !directory.join("CURRENT").exists() {
                let text = "it has no file CURRENT".to_owned();
                return Err(database::at(&directory, StoreError::Foreign(text)));
            }
            let db = database::open(&directory)?;
            let prepared = schema::prepare(&db, id).and_then(|_| schema::rename(&db, id));
            prepared.map_err(|error| database::at(&directory, error))?;
            Ok(Self::of(db, id))
        })
        .await
    }

    fn call<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.check_usable()?;
            act(&inner)
        })
        .boxed()
    }
}

impl Store for RocksStore {
    fn id(&self) -> StoreId {
        self.inner.id
    }

    fn load(&self) -> BoxFuture<'_, Result<StoredState, StoreError>> {
        load::load(Arc::clone(&self.inner)).boxed()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.call(move |inner| inner.commit(batch, Durability::Synced))
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.call(move |inner| inner.commit(batch, Durability::Later))
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.call(|inner| inner.db.flush_wal(true).map_err(|error| inner.fail(&error)))
    }

    fn unstage(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.call(|inner| replacing::unstage(&inner.db).map_err(|error| inner.fail(&error)))
    }

    fn stage(&self, entities: Vec<StoredEntity>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.call(move |inner| replacing::stage(&inner.db, entities).map_err(|error| inner.fail(&error)))
    }

    fn replace_by_staged(
        &self,
        revision: Revision,
        note: Option<Vec<u8>>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.call(move |inner| inner.replace_by_staged(revision, note))
    }

    fn import(&self, sequence: &[u8], records: Vec<Record>) -> BoxFuture<'_, Result<(), StoreError>> {
        let name = sequence.to_vec();
        self.call(move |inner| {
            let _one = inner.one_writer();
            let mut writes = WriteBatch::default();
            writes.put_cf(inner.family(SEQUENCES)?, key::sequence(&name), []);
            let family = inner.family(RECORDS)?;
            for Record { position, at, body } in records {
                writes.put_cf(family, key::record(&name, position), key::body(at, &body));
            }
            inner.db.write(writes).map_err(|error| inner.fail(&error))
        })
    }

    fn records(
        &self,
        prefix: &[u8],
        order: Order,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        let prefix = prefix.to_vec();
        self.call(move |inner| inner.records(&prefix, order, limit))
    }

    fn sequences(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Vec<u8>>, StoreError>> {
        let from = after.map(|after| key::after_all_with(&key::sequence(after))).unwrap_or_default();
        self.call(move |inner| {
            let rows =
                inner.db.iterator_cf(inner.family(SEQUENCES)?, IteratorMode::From(&from, Direction::Forward));
            rows.take(limit)
                .map(|row| {
                    let (sequence, _) = row.map_err(damaged)?;
                    key::name(&sequence).ok_or_else(|| damaged_row(&sequence))
                })
                .collect()
        })
    }

    fn prune(&self, prefix: &[u8], policy: RetentionPolicy) -> BoxFuture<'_, Result<usize, StoreError>> {
        let prefix = prefix.to_vec();
        self.call(move |inner| inner.prune(&prefix, policy))
    }

    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>> {
        let start = key::escaped(prefix);
        self.call(move |inner| {
            let end = key::after_all_with(&start);
            let mut writes = WriteBatch::default();
            for family in [RECORDS, SEQUENCES] {
                writes.delete_range_cf(inner.family(family)?, start.as_slice(), end.as_slice());
            }
            // Not synced: sequences that come back after a crash come back with their names, and are forgotten again.
            inner.db.write(writes).map_err(refused)
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.call(|inner| {
            size_of_files(inner.db.path()).map_err(|error| StoreError::Unavailable(error.to_string()))
        })
    }

    fn checkpoint(&self, directory: &Path) -> BoxFuture<'_, Result<Revision, StoreError>> {
        let directory = directory.to_owned();
        self.call(move |inner| {
            let checkpoint = rocksdb::checkpoint::Checkpoint::new(&inner.db).map_err(refused)?;
            checkpoint.create_checkpoint(&directory).map_err(refused)?;
            database::head_of_copy(&directory)
        })
    }

    fn sync_time(&self) -> Option<Duration> {
        match self.inner.sync_ns.load(Ordering::Relaxed) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds)),
        }
    }
}

/// Returns the size of a database's files. RocksDB deletes files meanwhile; those count nothing.
fn size_of_files(directory: &Path) -> std::io::Result<u64> {
    let mut size = 0;
    for entry in std::fs::read_dir(directory)? {
        match entry?.metadata() {
            Ok(metadata) if metadata.is_file() => size += metadata.len(),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(size)
}

impl Inner {
    /// Refuses all calls after a write whose outcome is unknown.
    fn check_usable(&self) -> Result<(), StoreError> {
        match self.failed.load(Ordering::Acquire) {
            true => Err(StoreError::Failed("an earlier write failed".into())),
            false => Ok(()),
        }
    }

    fn family(&self, name: &str) -> Result<&ColumnFamily, StoreError> {
        self.db.cf_handle(name).ok_or_else(|| StoreError::Damaged(format!("column family {name} is missing")))
    }

    fn one_writer(&self) -> parking_lot::MutexGuard<'_, ()> {
        // It guards no memory that a panic could leave inconsistent.
        self.writing.lock()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<Revision, StoreError> {
        let _one = self.one_writer();
        let have = schema::head(&self.db)?;
        if batch.expected != have {
            return Err(StoreError::HeadMoved { expected: batch.expected, have });
        }
        let revision = Revision(have.0 + 1);
        let (entities, records) = (self.family(ENTITIES)?, self.family(RECORDS)?);
        let sequences = self.family(SEQUENCES)?;
        let mut writes = WriteBatch::default();
        for (key, value) in batch.entities {
            match value {
                Some(value) => writes.put_cf(entities, key, value),
                None => writes.delete_cf(entities, key),
            }
        }
        // Written each time without a check: a read would cost more than the few bytes.
        for name in batch.records.iter().map(|record| &record.prefix).collect::<BTreeSet<_>>() {
            writes.put_cf(sequences, key::sequence(name), []);
        }
        for (index, record) in (0..).zip(batch.records) {
            let position = periapt_store::RecordPosition { revision, index };
            writes.put_cf(records, key::record(&record.prefix, position), key::body(record.at, &record.body));
        }
        schema::put_head(&mut writes, revision);
        if let Some(note) = batch.note {
            schema::put_note(&mut writes, Some(&note));
        }
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Synced);
        let began = Instant::now();
        self.db.write_opt(writes, &options).map_err(|error| self.fail(&error))?;
        if durability == Durability::Synced {
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
            self.sync_ns.store(took, Ordering::Relaxed);
        }
        Ok(revision)
    }

    fn replace_by_staged(&self, revision: Revision, note: Option<Vec<u8>>) -> Result<(), StoreError> {
        let _one = self.one_writer();
        replacing::replace(&self.db, revision, note).map_err(|error| {
            // The store that is opened next finishes the replacement, if it was decided on.
            self.failed.store(true, Ordering::Release);
            StoreError::Failed(error.to_string())
        })
    }

    /// Notes that the content of the disk is unknown after a failed write or sync: RocksDB must read its log again.
    fn fail(&self, error: &rocksdb::Error) -> StoreError {
        self.failed.store(true, Ordering::Release);
        StoreError::Failed(error.to_string())
    }

    fn records(&self, prefix: &[u8], order: Order, limit: usize) -> Result<Vec<Record>, StoreError> {
        let start = key::sequence(prefix);
        let (from, direction) = match order {
            Order::OldestFirst { after: None } => (start.clone(), Direction::Forward),
            Order::OldestFirst { after: Some(after) } => (key::just_after(prefix, after), Direction::Forward),
            Order::NewestFirst { before: None } => (key::after_all_with(&start), Direction::Reverse),
            Order::NewestFirst { before: Some(before) } => {
                (key::just_before(prefix, before), Direction::Reverse)
            }
        };
        let mut found = Vec::new();
        for row in self.db.iterator_cf(self.family(RECORDS)?, IteratorMode::From(&from, direction)) {
            let (key, value) = row.map_err(damaged)?;
            if !key.starts_with(&start) {
                // The end of the sequence. In reverse, the first row may belong to the next sequence.
                if matches!(direction, Direction::Reverse) && *key > *start {
                    continue;
                }
                break;
            }
            if found.len() == limit {
                break;
            }
            found.push(key::parse(&start, &key, &value).ok_or_else(|| damaged_row(&key))?);
        }
        Ok(found)
    }

    fn prune(&self, prefix: &[u8], mut policy: RetentionPolicy) -> Result<usize, StoreError> {
        let family = self.family(RECORDS)?;
        let start = key::sequence(prefix);
        let end = key::after_all_with(&start);
        let mut writes = WriteBatch::default();
        let mut seen = 0;
        for row in self.db.iterator_cf(family, IteratorMode::From(&end, Direction::Reverse)) {
            let (key, value) = row.map_err(damaged)?;
            if !key.starts_with(&start) {
                if *key > *start {
                    continue;
                }
                break;
            }
            let record = key::parse(&start, &key, &value).ok_or_else(|| damaged_row(&key))?;
            if policy(&record) == Retention::Drop {
                writes.delete_cf(family, &key);
            }
            seen += 1;
        }
        let pruned = writes.len();
        // Not synced: rows that come back after a crash are pruned again.
        self.db.write(writes).map_err(refused)?;
        if pruned == seen {
            self.unlist_if_empty(&start)?;
        }
        Ok(pruned)
    }

    /// Removes an empty sequence from the list, unless a commit has just appended to it.
    fn unlist_if_empty(&self, sequence: &[u8]) -> Result<(), StoreError> {
        let _one = self.one_writer();
        let from = IteratorMode::From(sequence, Direction::Forward);
        let next = self.db.iterator_cf(self.family(RECORDS)?, from).next().transpose().map_err(damaged)?;
        if next.is_some_and(|(key, _)| key.starts_with(sequence)) {
            return Ok(());
        }
        self.db.delete_cf(self.family(SEQUENCES)?, sequence).map_err(refused)
    }
}

/// Runs blocking work on tokio's blocking threads.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(act).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Failed(format!("the store's thread ended: {error}"))),
    }
}

fn refused(error: rocksdb::Error) -> StoreError {
    StoreError::Refused(error.to_string())
}

fn damaged(error: rocksdb::Error) -> StoreError {
    StoreError::Damaged(error.to_string())
}

fn damaged_row(key: &[u8]) -> StoreError {
    StoreError::Damaged(format!("a record's key has an invalid length of {} bytes", key.len()))
}
