//! The keeper of one model, with a scripted controller on one side and the test as the runner on the other.

mod claims;
pub(super) mod fake;
mod life;
mod rest;
mod suspicion;
