//! The durable state: the root that the writer published, and the records in the store.

use std::sync::Arc;

use periapt_host_api::{ErrorCode, Refusal, api::ModelSelector, command::Caller};
use periapt_model::ModelState;
use periapt_store::Store;

use crate::{
    published::{Published, Subscription},
    store_slot::StoreSlot,
};

/// The durable state. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Durable {
    /// The states that the writer publishes.
    pub(crate) state: Subscription,
    /// The open store.
    pub(crate) store: StoreSlot,
}

impl Durable {
    /// Returns the current durable state.
    pub(crate) fn current(&self) -> Arc<Published> {
        self.state.current()
    }

    /// Returns the open store, to read records.
    ///
    /// # Errors
    /// The store is being reopened.
    pub(crate) fn records(&self) -> Result<Arc<dyn Store>, Refusal> {
        self.store.get().ok_or_else(|| {
            Refusal::new(ErrorCode::StorageUnavailable, "the store is being opened again; try again later")
        })
    }
}

/// Returns the model that a selector names. Of several models with a name it is the caller's own; otherwise the name
/// must be unique.
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
