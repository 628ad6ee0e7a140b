//! The step to schema 2, which lists the names of all sequences with records.
//!
//! Without the list, the controller could not find the records of removed units, nor those of a model that was
//! removed shortly before a crash.

use periapt_store::StoreError;
use rocksdb::{DB, Direction, IteratorMode, WriteBatch};

use super::step::Progress;
use crate::{
    families::{RECORDS, SEQUENCES},
    key,
};

/// Lists the next sequences: seeks from the first record of each to the first record of the next.
pub(super) fn list(
    db: &DB,
    after: &[u8],
    limit: usize,
    writes: &mut WriteBatch,
) -> Result<Progress, StoreError> {
    let missing = || StoreError::Damaged("a column family is missing".into());
    let records = db.cf_handle(RECORDS).ok_or_else(missing)?;
    let sequences = db.cf_handle(SEQUENCES).ok_or_else(missing)?;
    let mut from = after.to_vec();
    for _ in 0..limit {
        let next = db.iterator_cf(records, IteratorMode::From(&from, Direction::Forward)).next();
        let next = next.transpose().map_err(|error| StoreError::Damaged(error.to_string()))?;
        let Some((record, _)) = next else { return Ok(Progress::Done) };
        let sequence = key::sequence_of(&record)
            .ok_or_else(|| StoreError::Damaged("a record belongs to no sequence".into()))?;
        writes.put_cf(sequences, sequence, []);
        from = key::after_all_with(sequence);
    }
    Ok(Progress::Until(from))
}
