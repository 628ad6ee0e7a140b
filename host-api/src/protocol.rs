//! What clients and agents ask of the controller, and what they are answered.

pub mod agent;
pub mod api;
pub mod command;
pub mod logs;
pub mod problem;
pub mod status;
pub mod timing;
pub mod view;
