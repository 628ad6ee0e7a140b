//! Hooks that were in flight when a runner died run first, one at a time, and nothing beside them.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{
    RunnerError, World,
    unit::{Tried, Unit},
};
use crate::protocol::ToKeeper;

/// Tries each suspect; each is cleared when it ends, or is not due any more. One whose charm is not here stays a suspect.
pub(crate) async fn run(world: &Arc<World>) -> Result<(), RunnerError> {
    for suspect in &world.start.suspects {
        let mut unit = Unit::new(Arc::clone(world), suspect.unit.clone());
        let mut pump = JoinSet::new();
        pump.spawn(unit.outbox().pump());
        let tried = unit.try_suspect(suspect).await?;
        unit.outbox().sender().await.send().await;
        if tried == Tried::Left {
            continue;
        }
        let ended = ToKeeper::HookEnded { unit: suspect.unit.clone(), operation: suspect.operation };
        world.link.tell(ended).await;
    }
    Ok(())
}
