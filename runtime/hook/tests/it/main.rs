//! One hook run at its boundary: through the typed door, and through the argv door as tables of
//! (command line, standard input) and (exit code, standard output, standard error).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, as it should")]

mod actions;
mod bags;
mod chance;
mod config;
mod goal_state;
mod leadership;
mod logs;
mod network;
mod outcome;
mod ports;
mod relations;
mod secrets;
mod state;
mod statuses;
mod tools;
mod world;
