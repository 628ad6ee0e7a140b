//! Tests of a runner with a real sandbox and a real charm. The test plays the keeper and the
//! controller.

mod arrival;
mod commits;
mod idle;
mod link;
mod many_units;
mod notices;
mod stage;
mod suspects;
mod traced;
mod turns;
