//! What people and machines get wrong, through the binary: each mistake is told in one error that says what was wrong
//! and where, ends with exit code 1, and leaves everything as it was.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod archives;
mod commands;
mod databases;
mod disks;
#[path = "../../../controller/server/tests/it/file_system.rs"]
mod file_system;
mod scene;
mod syncs;
