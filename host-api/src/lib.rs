//! The vocabulary that all sides of Periapt speak: names and ids, events, a hook's effects, the unit's record,
//! the views that agents mirror, charm metadata, and the HTTP API's commands and answers.
//!
//! This crate is pure: no clock, no randomness, no I/O. `wit/` beside it is the contract with charms.

pub mod action;
pub mod agent;
pub mod api;
pub mod budget;
pub mod bundle;
pub mod charm;
pub mod cloud;
pub mod command;
pub mod commit;
pub mod constraints;
pub mod duration;
pub mod event;
pub mod excerpt;
pub mod exec;
pub mod firewall;
pub mod glob;
pub mod hash;
pub mod id;
pub mod imports;
pub mod journal;
pub mod logs;
pub mod name;
pub mod network;
pub mod offer;
pub mod pending;
pub mod ports;
pub mod problem;
pub mod record;
pub mod refresh;
pub mod relation;
pub mod resource;
pub mod schema;
pub mod secret;
pub mod settings;
pub mod size;
pub mod ssh_key;
pub mod state;
pub mod status;
pub mod storage;
pub mod usage;
pub mod version;
pub mod view;
pub mod yaml;

pub use id::{
    ActionOperationId, CharmDigest, EventId, Incarnation, LeaderTerm, MachineId, ModelUuid, OfferUuid,
    OperationId, RelationId, Revision, StoreId, TaskId,
};
pub use jiff::Timestamp;
pub use name::{
    AgentName, ApplicationName, CloudName, CredentialName, EndpointName, InterfaceName, ModelName, NameError,
    ResourceName, SpaceName, StorageName, TagName, UnitName, UserName,
};
pub use problem::{ErrorCode, Refusal};
pub use storage::StorageId;
pub use version::JUJU_VERSION;
