//! A runner with a real sandbox and a real charm, whose keeper and controller the test plays.

mod arrival;
mod commits;
mod crowd;
mod idle;
mod link;
mod stage;
mod suspects;
mod turns;
