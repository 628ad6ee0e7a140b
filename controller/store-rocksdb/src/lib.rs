//! The embedded store: RocksDB in one directory, one process at a time, every commit synced.
//!
//! Three column families: `default` holds the store's identity, schema and head; `entities` the model; `records`
//! the append-only rows. A commit is one write batch over all three, so it happens wholly or not at all.

mod key;
mod schema;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::{Revision, StoreId, Timestamp};
use periapt_store::{Batch, Loaded, Order, Record, Store, StoreError};
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DBRecoveryMode, Direction, IteratorMode, Options, WriteBatch,
    WriteOptions,
};

const ENTITIES: &str = "entities";
const RECORDS: &str = "records";

/// A [`Store`] in a directory of its own.
#[derive(Debug, Clone)]
pub struct RocksStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: DB,
    id: StoreId,
    /// Set when it is unknown whether a write reached the disk: nothing is answered any more.
    failed: AtomicBool,
}

impl RocksStore {
    /// Opens the store in a directory, making it if there is none; `fresh_id` is its identity in that case.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it, [`StoreError::TooNew`] and [`StoreError::Damaged`] if it
    /// cannot be understood, [`StoreError::Failed`] if the disk refuses.
    pub async fn open(directory: &Path, fresh_id: StoreId) -> Result<Self, StoreError> {
        let directory = directory.to_owned();
        blocking(move || Self::open_blocking(&directory, fresh_id)).await
    }

    fn open_blocking(directory: &Path, fresh_id: StoreId) -> Result<Self, StoreError> {
        let families = [
            ColumnFamilyDescriptor::new(rocksdb::DEFAULT_COLUMN_FAMILY_NAME, family_options()),
            ColumnFamilyDescriptor::new(ENTITIES, family_options()),
            ColumnFamilyDescriptor::new(RECORDS, family_options()),
        ];
        let db = DB::open_cf_descriptors(&database_options(), directory, families).map_err(open_error)?;
        let id = schema::prepare(&db, fresh_id)?;
        tracing::debug!(directory = %directory.display(), store = %id, "store opened");
        Ok(Self { inner: Arc::new(Inner { db, id, failed: AtomicBool::new(false) }) })
    }

    /// Copies the store into an empty directory while it is in use: an online backup.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the directory exists or cannot be written.
    pub async fn checkpoint(&self, directory: &Path) -> Result<(), StoreError> {
        let directory = directory.to_owned();
        self.call(move |inner| {
            let checkpoint = rocksdb::checkpoint::Checkpoint::new(&inner.db).map_err(refused)?;
            checkpoint.create_checkpoint(&directory).map_err(refused)
        })
        .await
    }

    fn call<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            if inner.failed.load(Ordering::Acquire) {
                return Err(StoreError::Failed("an earlier write failed".into()));
            }
            act(&inner)
        })
        .boxed()
    }
}

impl Store for RocksStore {
    fn id(&self) -> StoreId {
        self.inner.id
    }

    fn load(&self) -> BoxFuture<'_, Result<Loaded, StoreError>> {
        self.call(|inner| {
            let revision = schema::head(&inner.db)?;
            let mut entities = Vec::new();
            for row in inner.db.iterator_cf(inner.family(ENTITIES)?, IteratorMode::Start) {
                let (key, value) = row.map_err(damaged)?;
                entities.push((key.into_vec(), value.into_vec()));
            }
            Ok(Loaded { revision, entities })
        })
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.call(move |inner| inner.commit(batch))
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

    fn prune(
        &self,
        prefix: &[u8],
        before: Timestamp,
        keep: usize,
    ) -> BoxFuture<'_, Result<usize, StoreError>> {
        let prefix = prefix.to_vec();
        self.call(move |inner| inner.prune(&prefix, before, keep))
    }

    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>> {
        let start = key::escaped(prefix);
        self.call(move |inner| {
            let end = key::after_all_with(&start);
            inner.db.delete_range_cf(inner.family(RECORDS)?, start, end).map_err(refused)
        })
    }
}

impl Inner {
    fn family(&self, name: &str) -> Result<&ColumnFamily, StoreError> {
        self.db.cf_handle(name).ok_or_else(|| StoreError::Damaged(format!("column family {name} is missing")))
    }

    fn commit(&self, batch: Batch) -> Result<Revision, StoreError> {
        let have = schema::head(&self.db)?;
        if batch.expected != have {
            return Err(StoreError::HeadMoved { expected: batch.expected, have });
        }
        let revision = Revision(have.0 + 1);
        let (entities, records) = (self.family(ENTITIES)?, self.family(RECORDS)?);
        let mut writes = WriteBatch::default();
        for (key, value) in batch.entities {
            match value {
                Some(value) => writes.put_cf(entities, key, value),
                None => writes.delete_cf(entities, key),
            }
        }
        for (index, record) in (0..).zip(batch.records) {
            let position = periapt_store::RecordPosition { revision, index };
            writes.put_cf(records, key::record(&record.prefix, position), key::body(record.at, &record.body));
        }
        schema::put_head(&mut writes, revision);
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.write_opt(writes, &options).map_err(|error| {
            // After a failed write or sync nobody can tell what the disk holds: RocksDB must read its log again.
            self.failed.store(true, Ordering::Release);
            StoreError::Failed(error.to_string())
        })?;
        Ok(revision)
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
                // The end of the sequence; in reverse the first row may still be one of the next sequence.
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

    fn prune(&self, prefix: &[u8], before: Timestamp, keep: usize) -> Result<usize, StoreError> {
        let family = self.family(RECORDS)?;
        let start = key::sequence(prefix);
        let end = key::after_all_with(&start);
        let mut writes = WriteBatch::default();
        let mut newer = 0;
        for row in self.db.iterator_cf(family, IteratorMode::From(&end, Direction::Reverse)) {
            let (key, value) = row.map_err(damaged)?;
            if !key.starts_with(&start) {
                if *key > *start {
                    continue;
                }
                break;
            }
            let record = key::parse(&start, &key, &value).ok_or_else(|| damaged_row(&key))?;
            if newer >= keep || record.at < before {
                writes.delete_cf(family, &key);
            }
            newer += 1;
        }
        let pruned = writes.len();
        // Not synced: rows that come back after a crash are pruned again.
        self.db.write(writes).map_err(refused)?;
        Ok(pruned)
    }
}

/// Runs blocking work on tokio's threads for it.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(act).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Failed(format!("the store's thread ended: {error}"))),
    }
}

fn database_options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // The default (point in time) would silently drop acknowledged commits that follow a damaged one; a torn last
    // record is one that was never acknowledged.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_paranoid_checks(true);
    options.set_max_open_files(256);
    options.set_keep_log_file_num(4);
    options.set_max_total_wal_size(64 << 20);
    options
}

fn family_options() -> Options {
    let mut options = Options::default();
    options.set_compression_type(rocksdb::DBCompressionType::Lz4);
    options.set_write_buffer_size(16 << 20);
    options
}

fn open_error(error: rocksdb::Error) -> StoreError {
    let text = error.to_string();
    match error.kind() {
        rocksdb::ErrorKind::IOError if text.contains("lock") || text.contains("LOCK") => {
            StoreError::InUse(text)
        }
        rocksdb::ErrorKind::Corruption => StoreError::Damaged(text),
        _ => StoreError::Failed(text),
    }
}

fn refused(error: rocksdb::Error) -> StoreError {
    StoreError::Refused(error.to_string())
}

fn damaged(error: rocksdb::Error) -> StoreError {
    StoreError::Damaged(error.to_string())
}

fn damaged_row(key: &[u8]) -> StoreError {
    StoreError::Damaged(format!("a record of {} bytes of key makes no sense", key.len()))
}
