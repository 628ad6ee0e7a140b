//! Tests of one model's keeper, with a fake controller, and with the test as its runner; and of the agent's program.

mod claims;
pub(super) mod fake;
mod life;
mod replacement;
mod rest;
mod suspicion;
