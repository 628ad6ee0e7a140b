//! Where charms run: wasmtime with every bound set, one fresh instance per hook, deny by default.
//!
//! A [`Sandbox`] is built once per process. A component is compiled elsewhere ([`Sandbox::compile`], in a process
//! for it alone), kept on disk with a MAC ([`artifact`]), checked and mapped ([`Sandbox::load`]), prepared once
//! ([`Sandbox::prepare`]) and run as often as there are hooks ([`Sandbox::run_hook`]). What a hook's calls do
//! stands in `periapt-hook`; here is only the way there, and the fence around it.

pub mod artifact;
mod clock;
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

pub use artifact::{ArtifactError, ArtifactId, ArtifactKey, SealedArtifact, WeakArtifact};
pub use divide::{MOST_MODULES, SharedModule, shared_modules};
pub use engine::{CompatibilityHash, engine_version};
pub use error::{Busy, HookError, HookErrorKind, PrepareError};
pub use files::{Bounds, Filesystem, FilesystemError, StorageMount, UnitFile, UnitFiles, Used, spare_bytes};
pub use fuel::FUEL_PER_SECOND;
pub use options::{Budgets, Options};
pub use random::Seed;
pub use run::{HandlerOutcome, HookReport, RunInputs};
pub use sandbox::{CompileError, Held, LoadedComponent, Prepared, Sandbox, SandboxError};
pub use services::{BoxFuture, HookServices};
