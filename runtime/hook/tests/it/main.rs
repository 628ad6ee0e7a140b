//! One hook run at its boundary. The table (`tests/tools`) covers the tools. These tests cover the rest: how a run
//! begins and ends, its bounds, and arbitrary guests.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, as it should")]

mod actions;
mod bags;
mod batches;
mod bounds;
mod cases;
mod chance;
mod events;
mod leadership;
mod logs;
mod outcome;
mod published;
mod resources;
mod scene;
mod secrets;
mod table;
mod tools;
mod typed;
mod world;
