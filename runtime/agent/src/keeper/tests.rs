//! Tests of one model's keeper, with a fake controller, and with the test as its runner.

mod claims;
pub(super) mod fake;
mod life;
mod rest;
mod suspicion;
