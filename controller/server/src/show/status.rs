//! The status of a model, and the info of the controller.

use std::sync::Arc;

use periapt_host_api::{ErrorCode, ModelUuid, Refusal, command::ControllerInfo, status::FullStatus};
use periapt_model::{StatusContext, full_status};

use crate::{clock::Clock, published::Published, supervision::WorkerHealth};

/// The data of a status or an info that is in no model: the time, this version, the engine of the agents, and where
/// controllers are.
#[derive(Clone)]
pub(crate) struct StatusSource {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) engine: Arc<str>,
    /// The URLs of the controllers of this store.
    pub(crate) addresses: Arc<[String]>,
    /// The object store that has the blobs, in words.
    pub(crate) blobs: Option<Arc<str>>,
    /// The workers that failed a short while ago.
    pub(crate) workers: WorkerHealth,
}

impl StatusSource {
    /// Returns the status of a model in a state, if the model exists.
    pub(crate) fn status_of(&self, published: &Published, model: &ModelUuid) -> Option<FullStatus> {
        let context = StatusContext {
            now: self.clock.now(),
            lease_now_ms: self.clock.monotonic_ms(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.to_string(),
            problems: published.problem.iter().cloned().collect(),
        };
        full_status(&published.root, model, &context)
    }

    /// Returns the controller's info.
    pub(crate) fn info(&self, published: &Published) -> Result<ControllerInfo, Refusal> {
        let controller = published
            .root
            .controller()
            .ok_or_else(|| Refusal::new(ErrorCode::TryAgain, "the controller has not started yet"))?;
        Ok(ControllerInfo {
            name: controller.name.clone(),
            uuid: controller.uuid,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.to_string(),
            store: published.store,
            revision: published.revision(),
            writable: published.problem.is_none(),
            stale: false,
            level: controller.level,
            blobs: self.blobs.as_deref().map(str::to_owned),
            members: Vec::new(),
            log: None,
            failing_workers: self.workers.failing(),
            program: None,
            target: None,
            addresses: self.addresses.to_vec(),
        })
    }
}
