//! One hook of a packed charm, in the sandbox that agents run it in, over a world that is given as data: a [`Scene`] goes
//! in, what the hook asked for comes out ([`Tried`]). There is no controller, no clock that runs and nothing that lasts,
//! so it is what tests of charms stand on, in whatever language they are written.
//!
//! A [`Trial`] is opened once for a charm and runs as many scenes as there are; one knows nothing of another.

mod cache;
mod native;
mod run;
mod scene;
mod stage;
mod tried;

pub use cache::CompiledCache;
pub use native::{NativeProgram, answer_as_hook_tool};
pub use run::{Trial, TrialError};
pub use scene::{
    BatchScene, EventKind, EventScene, ModelScene, RelationScene, Scene, SceneError, SecretScene,
    StatusScene, StorageScene,
};
pub use tried::{ActionTried, Ended, Tried};
