//! RocksDB as a store: what every store does, databases of older forms, and databases that were damaged.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod damage;
mod directory;
mod released;
mod suite;
