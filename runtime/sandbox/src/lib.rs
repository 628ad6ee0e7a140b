//! The sandbox for charms: wasmtime with all limits set, a fresh instance per hook, and no access by default.
//!
//! A [`Sandbox`] is built once per process. Another process compiles components ([`Sandbox::compile`]) and stores
//! them with a MAC ([`artifact`]). The runner checks and maps a component ([`Sandbox::load`]), prepares it once
//! ([`Sandbox::prepare`]) and runs its hooks ([`Sandbox::run_hook`]). `periapt-hook` implements the calls of
//! hooks; this crate isolates them and passes the calls on. [`workload`] has components that serve HTTP or run as
//! commands, with an engine, a pool and stores of their own.

pub mod artifact;
mod clock;
mod connections;
mod contract;
mod diagnosis;
mod divide;
mod engine;
mod error;
mod files;
mod fuel;
mod limits;
mod meter;
mod options;
mod output;
mod random;
mod run;
mod sandbox;
mod services;
mod state;
mod ticker;
mod wasi;
pub mod workload;

pub use artifact::{ArtifactError, ArtifactId, ArtifactKey, SealedArtifact, WeakArtifact};
pub use divide::{MOST_MODULES, SharedModule, shared_modules};
pub use engine::{CompatibilityHash, engine_version};
pub use error::{Busy, HookError, HookErrorKind, PrepareError};
pub use files::{
    Bounds, Filesystem, FilesystemError, ResourcesMount, StorageMount, UnitFile, UnitFiles, Used,
    measure_storage, spare_bytes,
};
pub use fuel::FUEL_PER_SECOND;
pub use options::{Budgets, Options};
pub use random::Seed;
pub use run::{HandlerOutcome, HookReport, RunInputs};
pub use sandbox::{CompileError, LoadedComponent, PoolStatistics, Prepared, Sandbox, SandboxError};
pub use services::{BoxFuture, HookServices};
