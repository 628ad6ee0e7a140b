//! The names of the column families.

/// The column family of entities.
pub(crate) const ENTITIES: &str = "entities";
/// The column family of append-only records.
pub(crate) const RECORDS: &str = "records";
/// The column family of sequence names: the key prefix of each sequence, without a value. Since schema 2.
pub(crate) const SEQUENCES: &str = "sequences";
