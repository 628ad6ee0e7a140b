//! Scripts, from their text to their output, over a world that answers as an agent does.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, as it should")]

mod bounds;
mod commands;
mod files;
mod language;
mod tools;
mod world;
