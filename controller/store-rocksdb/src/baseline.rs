//! RocksDB without the store's logic, for benchmarks: the best that a store could do on a disk.

use std::path::Path;

use periapt_store::{Batch, StoreError};
use rocksdb::{DB, WriteBatch, WriteOptions};

/// A RocksDB database with RocksDB's own defaults.
#[derive(Debug)]
pub struct BaselineDatabase {
    db: DB,
    written: u64,
}

impl BaselineDatabase {
    /// Opens a new database in a directory.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let db = DB::open_default(directory).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { db, written: 0 })
    }

    /// Writes a batch in one synced write on the caller's thread, without any check.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut writes = WriteBatch::default();
        for (key, value) in &batch.entities {
            match value {
                Some(value) => writes.put(key, value),
                None => writes.delete(key),
            }
        }
        for record in &batch.records {
            self.written += 1;
            let mut key = record.prefix.clone();
            key.extend(self.written.to_be_bytes());
            writes.put(key, &record.body);
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.write_opt(writes, &options).map_err(|error| StoreError::Failed(error.to_string()))
    }
}
