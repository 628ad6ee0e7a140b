//! Blobs in a real object store, and in one that fails.
#![expect(clippy::unwrap_used, reason = "helpers of tests say what failed by panicking")]

mod failing;
mod place;
mod shared;
