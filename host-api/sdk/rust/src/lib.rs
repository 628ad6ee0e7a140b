//! The SDK for charms in Rust.
//!
//! A charm is a struct with a method per event; [`export!`] makes it the component's handler. The effects of a hook
//! (bags, ports, state) happen when the hook succeeds, all or none; statuses and log lines are visible at once.
//! Memory does not outlive a hook: keep data in the unit's [`State`], or in a peer relation's bag if other units are
//! to see it.
//!
//! ```
//! use periapt_sdk::{Charm, Config, FromConfig, RelationJoined, Result, Status, Unit};
//!
//! #[derive(Default)]
//! struct Greeter;
//!
//! struct Settings {
//!     greeting: String,
//! }
//!
//! impl FromConfig for Settings {
//!     fn from_config(config: &Config) -> Result<Self> {
//!         Ok(Self { greeting: config.get("greeting")? })
//!     }
//! }
//!
//! impl Charm for Greeter {
//!     fn config_changed(&mut self, unit: &Unit) -> Result {
//!         let settings: Settings = unit.config()?;
//!         unit.set_status(&Status::active(settings.greeting))
//!     }
//!
//!     fn relation_joined(&mut self, unit: &Unit, event: &RelationJoined) -> Result {
//!         let settings: Settings = unit.config()?;
//!         event.relation.unit_bag().set("greeting", settings.greeting)
//!     }
//! }
//!
//! periapt_sdk::export!(Greeter);
//! # fn main() {}
//! ```
//!
//! On the host, `cargo test` runs a charm against an in-memory unit: see [`testing`].

mod action;
mod bag;
#[rustfmt::skip]
#[allow(
    missing_docs,
    unreachable_pub,
    unsafe_code,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "generated"
)]
pub mod bindings;
mod charm;
mod config;
mod error;
mod event;
mod export;
mod http;
mod incoming;
mod later;
mod log;
mod pebble;
mod ports;
mod relation;
mod resource;
mod secret;
mod state;
mod status;
mod storage;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod tools;
mod unit;
mod websocket;
mod workload;

/// The host's functions: imports in a sandbox, the in-memory unit of [`testing`] elsewhere.
#[cfg(target_arch = "wasm32")]
use bindings::periapt::charm as host;
#[cfg(not(target_arch = "wasm32"))]
use testing::imports as host;

pub use action::FromParam;
pub use bag::{Bag, OwnBag};
pub use bindings::periapt::charm::goal_state::{GoalRelation, GoalState, GoalStatus};
pub use bindings::periapt::charm::log::Level;
pub use bindings::periapt::charm::network::{InterfaceAddress, NetworkInfo, NetworkInterface};
pub use bindings::periapt::charm::types::{
    ActionEvent, CustomEvent, Error as Refusal, Failure, Invocation, MeterStatusEvent, Outcome, SecretEvent,
    SecretRevisionEvent, SeriesUpgradeEvent, StorageEvent, StorageKind, WorkloadCheckEvent, WorkloadEvent,
    WorkloadNoticeEvent,
};
pub use charm::{Charm, handle};
pub use config::{Config, FromConfig, FromOption, Value};
pub use error::{Context, Error, Result};
pub use event::{
    Event, RelationBatch, RelationBroken, RelationChanged, RelationCreated, RelationDeparted, RelationJoined,
};
pub use http::HttpResponse;
pub use later::{Later, Pending};
pub use log::write_log;
pub use pebble::{
    FileAccess, FileInfo, Pebble, PebbleCheck, PebbleError, PebbleExec, PebbleNotice, PebbleOutput,
    PebbleService,
};
pub use ports::{OpenedPorts, Ports};
pub use relation::Relation;
pub use resource::Resource;
pub use secret::{Access, NewSecret, Owner, Rotate, Secret, SecretChange, SecretContent, SecretDetails};
pub use state::State;
pub use status::{Status, Workload};
pub use storage::Storage;
pub use tools::{Output, tool, tool_reading};
pub use unit::Unit;
pub use workload::WorkloadStream;
