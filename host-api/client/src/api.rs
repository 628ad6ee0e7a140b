//! The API's methods, by kind of caller.

mod agent;
mod backup;
mod blob;
mod charm;
mod controllers;
mod exec_session;
mod layers;
mod operator;
mod resource;
mod user;

pub use blob::Download;
pub use controllers::QueuedCommands;
pub use exec_session::{ExecSender, ExecSession};
pub use layers::KnownLayer;
