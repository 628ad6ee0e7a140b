//! The upgrade of a database from an older schema to the newest: one step for each schema, each in batches.
//!
//! A batch and its progress are written atomically: after a crash, the next start continues after the last batch. The
//! first batch of a step already raises `schema`, so that a program without the new schema refuses a half-upgraded
//! database.

use periapt_store::StoreError;
use rocksdb::{DB, WriteBatch};

use super::{
    SCHEMA, schema, sequences,
    step::{Progress, Step},
    write_synced,
};

/// The number of items of one batch: some hundred KiB of writes.
pub(super) const BATCH: usize = 1_000;

const UPGRADE: &str = "upgrade";

/// The step from schema 1 to 2, from 2 to 3, and so on. A released step never changes.
pub(super) const STEPS: [Step; 1] = [sequences::list];

/// Runs the next batch of the upgrade; returns false if the schema is up to date.
pub(super) fn advance(db: &DB, limit: usize) -> Result<bool, StoreError> {
    let damaged = || StoreError::Damaged("its schema is invalid".into());
    let under_way = db.get(UPGRADE).map_err(|error| StoreError::Damaged(error.to_string()))?;
    let found = schema(db)?.ok_or_else(damaged)?;
    let target = match &under_way {
        Some(_) => found,
        None if found == SCHEMA => return Ok(false),
        None => found + 1,
    };
    let step = target.checked_sub(2).and_then(|index| STEPS.get(usize::try_from(index).ok()?));
    let step = step.ok_or_else(damaged)?;
    let mut writes = WriteBatch::default();
    match step(db, under_way.as_deref().unwrap_or_default(), limit, &mut writes)? {
        Progress::Until(end) => writes.put(UPGRADE, end),
        Progress::Done => writes.delete(UPGRADE),
    }
    writes.put("schema", target.to_be_bytes());
    write_synced(db, writes)?;
    tracing::debug!(schema = target, "a batch of the upgrade was done");
    Ok(true)
}

#[cfg(test)]
mod tests;
