//! The store from outside: stored forms, keys, and the in-memory store.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

mod codec;
mod forms;
mod keys;
mod memory;
mod previous;
mod samples;
