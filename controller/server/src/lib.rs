//! The controller: a single writer over the pure model, what readers and watchers see of it, the workers that
//! converge the world, and the HTTP/2 API.
//!
//! [`Options`] say what it is made from, [`Options::build`] opens the store and binds the address, and
//! [`Service::run`] serves until it is told to stop.

mod api;
mod bounds;
mod check;
mod clock;
mod commands;
mod history;
mod options;
mod presence;
mod published;
mod records;
mod seal;
mod service;
mod show;
mod state;
mod store_slot;
mod tasks;
mod upkeep;
mod watch;
mod workers;
mod writer;

pub use api::openapi;
pub use check::run_check_helper;
pub use clock::{Clock, RandomSource, SystemClock, SystemRandomSource};
pub use options::{OpenStore, Options};
pub use periapt_helper::Program;
pub use seal::SealKey;
pub use service::{BuildError, Handle, RunError, Service};
