//! The form of a step to a newer schema.

use periapt_store::StoreError;
use rocksdb::{DB, WriteBatch};

/// A function that adds the next batch of a step to `writes`. Its arguments are the end of the previous batch, empty
/// at first, and the most items to handle.
pub(super) type Step = fn(&DB, &[u8], usize, &mut WriteBatch) -> Result<Progress, StoreError>;

/// The progress of a step after a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The step continues after this position.
    Until(Vec<u8>),
    /// The step is complete.
    Done,
}
