//! The controller's model: what it keeps ([`entity`]), how commands change it ([`evaluate`]), what each caller
//! may see of it, and how statuses are derived. Pure: time and seeds are arguments, and the same input gives
//! the same output.

mod access;
mod agent;
pub mod changes;
mod command;
mod commit;
mod config;
pub mod entity;
mod evaluate;
mod input;
mod life;
mod root;
mod transaction;
mod worker;

pub use changes::{Changes, RecordAppend, RecordBody, RecordKind, StatusRecord, VolatileChange};
pub use entity::{Entity, EntityKey, ModelKey};
pub use evaluate::evaluate;
pub use input::{Environment, Input, Output, UploadedCharm, WorkerCommand};
pub use root::{GRACE_SECONDS, LoadError, ModelState, Presence, RESTART_LEASE_MS, Root};
pub use worker::{DueWork, due_work};
