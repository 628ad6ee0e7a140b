//! The files of resources that the host fetched for one hook.

use std::collections::BTreeMap;

use periapt_host_api::resource::ResourceKey;

use crate::{CallError, lease::Interruption};

/// The files that the host fetched for this hook.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    fetched: BTreeMap<ResourceKey, Result<(), CallError>>,
}

impl Resources {
    pub(crate) fn fetched(&mut self, key: ResourceKey, result: Result<(), CallError>) {
        self.fetched.insert(key, result);
    }

    /// Checks that the host has put the file in its place. A failure is returned once: the next call tries again.
    pub(super) fn check(&mut self, key: ResourceKey) -> Result<(), Interruption> {
        match self.fetched.get(&key) {
            None => Err(Interruption::NeedsResource(key)),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                let error = error.clone();
                self.fetched.remove(&key);
                Err(error.into())
            }
        }
    }
}
