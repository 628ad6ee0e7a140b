//! Bringing a database from an older schema to the newest: one step for each schema, each in batches.
//!
//! A batch is atomic, and so is what it says of how far it came: killed at any moment, the next start goes on where
//! the last batch ended. The first batch of a step raises `schema` already, so that a program that does not know
//! the new schema refuses a database that is half on its way there.

use periapt_store::StoreError;
use rocksdb::{DB, WriteBatch};

use super::{SCHEMA, schema, sequences, write_synced};

/// How many things one batch of a step handles: some hundred KiB of writes.
pub(super) const BATCH: usize = 1_000;

const UPGRADE: &str = "upgrade";

/// The step from schema 1 to 2, from 2 to 3, and so on. A step that was released never changes.
pub(super) const STEPS: [Step; 1] = [sequences::list];

/// Adds the next batch of a step to `writes`: at most so many things, the first of them after where the batch before
/// ended, which is empty at the beginning.
pub(super) type Step = fn(&DB, &[u8], usize, &mut WriteBatch) -> Result<Progress, StoreError>;

/// How far a step has come with a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to do after this.
    Until(Vec<u8>),
    /// This was the last batch.
    Done,
}

/// Does the next batch of the step that is due. False if there is none.
pub(super) fn advance(db: &DB, limit: usize) -> Result<bool, StoreError> {
    let damaged = || StoreError::Damaged("its schema makes no sense".into());
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
