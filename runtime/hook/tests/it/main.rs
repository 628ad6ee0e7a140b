//! One hook run at its boundary. What the tools say stands in the table (`tests/tools`); here is what a table cannot
//! say: how a run begins and ends, what bounds it, and what any guest may try.

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
