//! The log in real servers of etcd.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests say what failed by panicking"
)]

mod failures;
mod fixture;
mod leaderships;
mod refusals;
mod removals;
mod suite;
mod tls;
