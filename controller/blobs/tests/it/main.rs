//! Blobs in a real object store, and in one that fails.

mod failing;
mod place;
mod shared;
