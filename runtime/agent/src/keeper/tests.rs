//! Tests of one model's keeper, with a fake controller, and with the test as its runner; and of the
//! agent's registration and program.

mod claims;
pub(super) mod fake;
mod life;
mod registration;
mod replacement;
mod rest;
mod suspicion;
