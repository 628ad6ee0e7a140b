//! Tests of the resolver and of the record's transitions. Each resolves one unit until it settles, and compares the
//! hooks that ran with the expected ones. The views come from the controller's own model in a laboratory. Test names
//! cite the rows of the conformance list that they show.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

mod batches;
mod coalesced;
mod config;
mod cost;
mod executor;
mod failure;
mod later;
mod leadership;
mod properties;
mod relations;
mod removal;
mod start_up;
mod statuses;
mod subordinates;
mod update_status;
mod upgrade;
mod world;

pub(crate) use world::{World, check};
