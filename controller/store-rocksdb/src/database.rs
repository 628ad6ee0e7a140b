//! The database's options, and its opening, which leaves unusable databases unchanged.

use std::{fs, io, path::Path};

use periapt_host_api::Revision;
use periapt_store::StoreError;
use rocksdb::{BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBRecoveryMode, ErrorKind, Options};

use crate::{
    families::{ENTITIES, RECORDS, SEQUENCES},
    log_end, schema,
};

/// The most bytes of one family's memtable. RocksDB keeps a memtable until it is full, however long nothing is written;
/// a flush takes a few milliseconds.
const WRITE_BUFFER: usize = 8 << 20;

/// The most bytes of the block cache, which all families share. A larger one would hardly be used: the controller reads
/// all entities once, when it starts, and later the end of a sequence. By default each family has 32 MiB of its own.
const READ_BLOCKS: usize = 8 << 20;

/// Opens the database in a directory, or creates one.
///
/// A database that a newer or another program wrote, or whose `CURRENT` file is missing, is never opened for writing.
pub(crate) fn open(directory: &Path) -> Result<DB, StoreError> {
    if exists(directory)? {
        let looked_at = look(directory);
        if let Err(error @ StoreError::TooNew { .. }) = looked_at {
            return Err(error);
        }
        refuse_hidden(directory)?;
        // A database with a truncated log may look like another program's.
        if let Err(error @ StoreError::Foreign(_)) = looked_at {
            return Err(at(directory, error));
        }
    }
    let read = Cache::new_lru_cache(READ_BLOCKS);
    let families = [rocksdb::DEFAULT_COLUMN_FAMILY_NAME, ENTITIES, RECORDS, SEQUENCES]
        .map(|name| ColumnFamilyDescriptor::new(name, family_options(&read)));
    DB::open_cf_descriptors(&database_options(), directory, families)
        .map_err(|error| at(directory, open_error(&error)))
}

/// Prefixes the error with the directory.
pub(crate) fn at(directory: &Path, error: StoreError) -> StoreError {
    let name = |text| format!("{}: {text}", directory.display());
    match error {
        StoreError::Damaged(text) => StoreError::Damaged(name(text)),
        StoreError::Unavailable(text) => StoreError::Unavailable(name(text)),
        StoreError::Foreign(text) => StoreError::Foreign(name(text)),
        StoreError::InUse(text) => StoreError::InUse(name(text)),
        other => other,
    }
}

/// Returns true if the directory has a database. `CURRENT` names a database's manifest; without it RocksDB would
/// create a new database over the old. A log or a table proves an old database, as RocksDB writes them after
/// `CURRENT`.
fn exists(directory: &Path) -> Result<bool, StoreError> {
    let unreadable = |error: io::Error| at(directory, StoreError::Unavailable(error.to_string()));
    if directory.join("CURRENT").try_exists().map_err(unreadable)? {
        return Ok(true);
    }
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries.map_err(unreadable)?,
    };
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".sst").or(name.strip_suffix(".log")));
        if number.is_some_and(|number| number.parse::<u64>().is_ok()) {
            let text = format!("there is {} but no file CURRENT", name.display());
            return Err(at(directory, StoreError::Damaged(text)));
        }
    }
    Ok(false)
}

/// Checks the schema without writing anything, not even recovery's files.
fn look(directory: &Path) -> Result<(), StoreError> {
    // Opening for writing reports all other errors. It takes the lock first: another process may be using the
    // database.
    match DB::open_for_read_only(&read_only_options(), directory, false) {
        Ok(db) => schema::refuse_unknown(&db),
        Err(_) => Ok(()),
    }
}

/// Returns the revision of a copy, without changing its database.
pub(crate) fn head_of_copy(directory: &Path) -> Result<Revision, StoreError> {
    let opened = DB::open_for_read_only(&read_only_options(), directory, false);
    let db = opened.map_err(|error| at(directory, open_error(&error)))?;
    match schema::replacing::next_head(&db)? {
        Some(next) => Ok(next),
        None => schema::head(&db),
    }
}

/// Refuses a database if RocksDB would silently drop the end of its log or of its manifest.
fn refuse_hidden(directory: &Path) -> Result<(), StoreError> {
    let unreadable = |error: io::Error| at(directory, StoreError::Unavailable(error.to_string()));
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let is_log =
            name.to_str().is_some_and(|name| name.ends_with(".log") || name.starts_with("MANIFEST-"));
        match is_log.then(|| log_end::hides_a_record(&entry.path())) {
            Some(Ok(true)) => {
                let text = format!("a length at the end of {} is wrong", name.display());
                return Err(at(directory, StoreError::Damaged(text)));
            }
            // Another process that has the database open may delete an obsolete file at any time.
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(error)),
            _ => {}
        }
    }
    Ok(())
}

fn read_only_options() -> Options {
    let mut options = Options::default();
    options.set_max_open_files(256);
    options
}

fn database_options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // RocksDB's default (point in time) would silently drop acknowledged commits that follow a damaged one. A torn
    // last record was never acknowledged.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_paranoid_checks(true);
    options.set_max_open_files(256);
    options.set_keep_log_file_num(4);
    options.set_max_total_wal_size(64 << 20);
    options
}

fn family_options(read: &Cache) -> Options {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(read);
    let mut options = Options::default();
    options.set_block_based_table_factory(&tables);
    options.set_compression_type(rocksdb::DBCompressionType::Lz4);
    options.set_write_buffer_size(WRITE_BUFFER);
    options
}

fn open_error(error: &rocksdb::Error) -> StoreError {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::IOError if text.contains("lock") || text.contains("LOCK") => StoreError::InUse(text),
        // A file that the manifest names is missing, or the manifest names unknown column families.
        ErrorKind::IOError if text.contains("No such file") => StoreError::Damaged(text),
        ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotSupported => {
            StoreError::Damaged(text)
        }
        _ => StoreError::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_whatever_was_written_and_read() {
        let directory = tempfile::tempdir().unwrap();
        let database = open(directory.path()).unwrap();
        let families = [ENTITIES, RECORDS].map(|name| database.cf_handle(name).unwrap());
        for number in 0..2_000_u32 {
            for family in families {
                database.put_cf(family, number.to_be_bytes(), vec![b'x'; 16 << 10]).unwrap();
            }
        }
        for family in families {
            database.flush_cf(family).unwrap();
            assert_eq!(database.iterator_cf(family, rocksdb::IteratorMode::Start).count(), 2_000);
            database.put_cf(family, b"one more", vec![b'x'; WRITE_BUFFER / 2]).unwrap();
        }
        let sizes =
            |property| families.map(|family| database.property_int_value_cf(family, property).unwrap());
        let blocks = sizes("rocksdb.block-cache-usage");
        assert_eq!(blocks[0], blocks[1], "families have a cache of their own each");
        let most = u64::try_from(READ_BLOCKS).unwrap();
        assert!(blocks[0].is_some_and(|bytes| (most / 2..=most + most / 8).contains(&bytes)), "{blocks:?}");
        for buffers in sizes("rocksdb.cur-size-all-mem-tables") {
            // The last may be as large as a value more.
            let most = u64::try_from(WRITE_BUFFER * 5 / 4).unwrap();
            assert!(buffers.is_some_and(|bytes| bytes <= most), "{buffers:?} bytes");
        }
    }
}
