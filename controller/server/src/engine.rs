//! What all requests share: the way to the writer, the durable state, records, blobs, presence.

use std::{sync::Arc, time::Duration};

use periapt_blobs::Blobs;
use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    api::ModelSelector,
    command::{Caller, ControllerInfo},
    status::FullStatus,
};
use periapt_model::{ModelState, StatusContext, full_status};
use periapt_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{Places, Uploads},
    check::Checks,
    clock::Clock,
    commands::Commands,
    presence::Presence,
    published::{Published, Subscription},
    seal::Door,
    store_slot::StoreSlot,
    upkeep::{Growth, shelf::Shelf},
    watch::Watches,
};

/// How many other bodies are read at a time: with the largest that is taken it bounds what clients can make the
/// controller hold, however many streams they open.
pub(crate) const BODIES: usize = 64;

/// Shared by all requests. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Engine(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) commands: Commands,
    pub(crate) state: Subscription,
    pub(crate) store: StoreSlot,
    /// Of charms' archives.
    pub(crate) blobs: Blobs,
    /// Of resources.
    pub(crate) contents: Blobs,
    pub(crate) door: Door,
    pub(crate) charms: Shelf,
    pub(crate) resources: Shelf,
    pub(crate) growth: Growth,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) presence: Presence,
    pub(crate) watches: Watches,
    pub(crate) places: Places,
    pub(crate) charm_uploads: Uploads,
    pub(crate) resource_uploads: Uploads,
    pub(crate) upload_progress_within: Duration,
    pub(crate) checks: Checks,
    pub(crate) bodies: Semaphore,
    pub(crate) engine: String,
    /// Ends all streams.
    pub(crate) stop: CancellationToken,
}

impl Engine {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// The durable state now.
    pub(crate) fn current(&self) -> Arc<Published> {
        self.state.current()
    }

    /// The open store, for reading records.
    pub(crate) fn records(&self) -> Result<Arc<dyn Store>, Refusal> {
        self.store.get().ok_or_else(|| {
            Refusal::new(ErrorCode::StorageUnavailable, "the store is being opened again; try again later")
        })
    }

    /// What `status` shows of a model in a state; none if there is no such model.
    pub(crate) fn status_of(&self, published: &Published, model: &ModelUuid) -> Option<FullStatus> {
        let context = StatusContext {
            now: self.clock.now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.clone(),
            problems: published.problem.iter().cloned().collect(),
        };
        full_status(&published.root, model, &context)
    }

    /// What the controller says of itself.
    pub(crate) fn info(&self) -> Result<ControllerInfo, Refusal> {
        let published = self.current();
        let controller = published
            .root
            .controller()
            .ok_or_else(|| Refusal::new(ErrorCode::TryAgain, "the controller has not started yet"))?;
        Ok(ControllerInfo {
            name: controller.name.clone(),
            uuid: controller.uuid,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.clone(),
            store: published.store,
            revision: published.revision(),
            writable: published.problem.is_none(),
        })
    }
}

impl std::ops::Deref for Engine {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// The model that a caller means: its own of that name, or else the only one of that name.
pub(crate) fn find_model(
    published: &Published,
    caller: &Caller,
    selector: &ModelSelector,
) -> Result<Arc<ModelState>, Refusal> {
    let unknown =
        || Refusal::not_found(format!("model {selector} not found")).about(format!("model {selector}"));
    let name = match selector {
        ModelSelector::Uuid(uuid) => return published.root.model(uuid).cloned().ok_or_else(unknown),
        ModelSelector::Owned(owner, name) => {
            return published.root.model_named(owner, name).cloned().ok_or_else(unknown);
        }
        ModelSelector::Name(name) => name,
    };
    if let Caller::User(user) = caller
        && let Some(own) = published.root.model_named(user, name)
    {
        return Ok(Arc::clone(own));
    }
    let mut named = published.root.models().filter(|(_, state)| state.model().name == *name);
    match (named.next(), named.next()) {
        (Some((_, only)), None) => Ok(Arc::clone(only)),
        (None, _) => Err(unknown()),
        (Some(_), Some(_)) => Err(Refusal::new(
            ErrorCode::Ambiguous,
            format!("several users have a model {name}; name it as USER/{name}, or by its UUID"),
        )),
    }
}
