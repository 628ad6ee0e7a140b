//! Tests of the sandbox with real and hostile guests.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, as it should")]

#[macro_use]
#[path = "../../../../charms/hostile/catalogue.rs"]
mod catalogue;

mod artifacts;
mod budgets;
mod contract;
mod fixture;
mod hostile;
mod modules;
mod repeatable;
mod streams;
mod tools;
mod workload_commands;
mod workloads;
mod world;
