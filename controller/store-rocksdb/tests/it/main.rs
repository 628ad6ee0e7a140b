//! RocksDB as a store: the conformance suite, databases of older schemas, damaged databases, and killed processes.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod crash;
mod damage;
mod directory;
mod released;
mod suite;
