//! The controller's model: what it keeps ([`entity`]), how commands change it, what each caller
//! may see of it, and how statuses are derived. Pure: time and seeds are arguments, and the same input gives
//! the same output.

pub mod changes;
pub mod entity;
mod input;
mod root;

pub use changes::{Changes, RecordAppend, RecordBody, RecordKind, StatusRecord, VolatileChange};
pub use entity::{Entity, EntityKey, ModelKey};
pub use input::{Environment, Input, Output, UploadedCharm, WorkerCommand};
pub use root::{LoadError, ModelState, Presence, Root};
