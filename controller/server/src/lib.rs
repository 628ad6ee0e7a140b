//! The controller: a single writer over the pure model, the states and streams for readers, the background workers,
//! and the HTTP/2 API.
//!
//! [`Options`] configure it, [`Options::build`] opens the store and binds the address, and [`Service::run`] serves
//! until it is stopped.

mod api;
mod backup;
mod bounds;
mod check;
mod clock;
mod enrolled;
mod exec_sessions;
mod history;
mod listen;
mod login;
pub mod metrics;
mod migration;
mod network;
mod oidc;
mod options;
mod presence;
mod pruning;
mod published;
mod received;
mod records;
mod refusals;
mod replacement;
mod replication;
mod seal;
mod service;
mod show;
mod state;
mod store_slot;
mod sums;
mod supervision;
mod tasks;
mod watch;
mod workers;
mod workload_logs;
mod workload_orders;
mod writer;

pub use api::{RouteRight, access_document, openapi, route_rights};
pub use backup::{
    BackupChain, BackupError, BackupFile, BackupKeys, BackupManifest, BackupSummary, RestoredController,
    RestoredKeys, RestoredLog, StoppedController, derive_key, new_derivation, recover, restore,
};
pub use check::run_check_helper;
pub use clock::{Clock, RandomSource, SystemClock, SystemRandomSource};
pub use listen::{AuthorityError, CertificateFiles, GivenFileError, Listen, TlsListen};
pub use oidc::{ClientSecret, IssuerUrl, IssuerUrlError, OidcOptions};
pub use options::{OpenStore, Options};
pub use periapt_helper::Program;
pub use replication::{AnswerObserver, KEPT_LOG_BYTES, LogBounds, MAX_LOG_BYTES, ReplicationOptions};
pub use seal::SealKey;
pub use service::{BuildError, Handle, RunError, Service};
