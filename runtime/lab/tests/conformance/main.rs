//! The conformance list in the laboratory. Each test is named after its row, and goes through the controller's
//! model, frames, the uniter and hook contexts, as a real model does. End-to-end tests cover the rows that need
//! real processes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

mod actions;
mod batches;
mod bench;
mod commits;
mod configuration;
mod crossing;
mod cut_short;
mod day;
mod defects;
mod exec;
mod failure;
mod goal;
mod invariants;
mod later;
mod leadership;
mod notices;
mod pod_lives;
mod pods;
mod promises;
mod properties;
mod recovery;
mod relations;
mod removal;
mod scopes;
mod secrets;
mod startup;
mod state;
mod storage;
mod surroundings;
mod tools;
mod workloads;
