//! Tests of a runner with a real sandbox and a real charm. The test plays the keeper and the
//! controller.

mod arrival;
mod commits;
mod crowd;
mod idle;
mod link;
mod stage;
mod suspects;
mod turns;
