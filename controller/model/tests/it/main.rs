//! Tests of the model from outside: sequences of commands, with the invariants checked after each.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

mod actions;
mod answers;
mod assumes;
mod clouds;
mod commits;
mod config;
mod constraints;
mod cost;
mod crossing;
mod deploy;
mod enrolment;
mod events;
mod failover;
mod firewall;
mod invariants;
mod leases;
mod levels;
mod limits;
mod machines;
mod many_workloads;
mod migration;
mod properties;
mod refresh;
mod relations;
mod removal;
mod resources;
mod scopes;
mod secrets;
mod spaces;
mod state;
mod status;
mod turns;
mod usage;
mod users;
mod views;
mod workloads;
mod world;
