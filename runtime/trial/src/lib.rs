//! One hook of a packed charm, in the sandbox of agents, over a world given as data: a [`Scene`] goes in, the hook's
//! effects come out ([`TrialResult`]). There is no controller, no running clock and no lasting state, so tests of
//! charms in any language can use it.
//!
//! A [`Trial`] is opened once for a charm and runs any number of scenes, each independent of the others. It also replays
//! hooks of the charm that a journal recorded ([`Trial::replay`]).

mod cache;
mod error;
mod native;
mod replay;
mod result;
mod run;
mod scene;
mod stage;

pub use cache::CompiledCache;
pub use error::TrialError;
pub use native::{NativeProgram, answer_as_hook_tool};
pub use replay::{ReplayDifference, ReplayError, ReplayResult, ReplayedLine, check_replayable};
pub use result::{ActionTrialResult, TrialOutcome, TrialResult};
pub use run::Trial;
pub use scene::{
    BatchScene, EventKind, EventScene, ModelScene, NoticeScene, RelationScene, Scene, SceneError,
    SecretScene, StatusScene, StorageScene,
};
