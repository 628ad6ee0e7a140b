//! Mistakes of people and machines, through the binary: each ends with exit code 1 and one error that names the fault
//! and its place, and changes nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::indexing_slicing, reason = "a test that finds nothing where something belongs has failed")]

mod archives;
#[path = "../../../host-api/pack/archive/tests/fuzz/changes.rs"]
mod changes;
mod clocks;
mod commands;
#[path = "../../../host-api/pack/archive/tests/fuzz/components.rs"]
mod components;
mod databases;
mod disks;
#[path = "../../../controller/server/tests/it/file_system.rs"]
mod file_system;
mod hostile_uploads;
mod inputs;
mod scene;
mod syncs;
