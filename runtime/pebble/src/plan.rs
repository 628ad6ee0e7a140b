//! The plan: what a stack of layers says together.

mod check;
mod command;
mod layer;
mod log_target;
mod merge;
mod order;
mod read;
mod service;
mod stack;
mod validate;

pub use check::CheckLevel;
pub(crate) use check::{Check, ProbeKind};
pub(crate) use command::split;
pub use layer::{Layer, LayerError, Plan};
pub(crate) use log_target::{LogTarget, LogTargetKind};
pub(crate) use order::{start_order, stop_order, waits};
pub(crate) use service::{Action, Service};
pub use stack::{Adding, Stack};
