//! RocksDB as a store: the conformance suite, databases of older schemas, and damaged databases.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod damage;
mod directory;
mod released;
mod suite;
