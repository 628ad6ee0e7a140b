//! Resources as one hook sees them (`hook-model.md` 5.2): what the charm that the unit runs declares, with the content
//! that the snapshot shows. The file is fetched when it is asked for, and stays for the rest of the hook.

use std::collections::BTreeMap;

use periapt_host_api::{
    Digest,
    charm::ResourceKind,
    resource::{ResourceKey, resource_path},
};
use serde::Serialize;

use crate::{CallError, lease::Halt, run::HookRun};

/// As much of a name as an error shows.
const SHOWN: usize = 128;

/// The file of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceFile {
    /// Where the hook finds it.
    pub path: String,
    /// Rises by one with each content.
    pub revision: u64,
    /// In bytes.
    pub size: u64,
    /// Its content.
    pub digest: Digest,
}

/// What was fetched for this hook.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    fetched: BTreeMap<ResourceKey, Result<(), CallError>>,
}

impl Resources {
    pub(crate) fn fetched(&mut self, key: ResourceKey, result: Result<(), CallError>) {
        self.fetched.insert(key, result);
    }

    /// Whether the file is where the hook finds it. A failure is told once: the next call tries again.
    fn check(&mut self, key: ResourceKey) -> Result<(), Halt> {
        match self.fetched.get(&key) {
            None => Err(Halt::NeedsResource(key)),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                let error = error.clone();
                self.fetched.remove(&key);
                Err(error.into())
            }
        }
    }
}

impl HookRun {
    /// The file of a resource.
    pub(crate) fn resource(&mut self, text: &str) -> Result<ResourceFile, Halt> {
        let shown = || text.chars().take(SHOWN).collect::<String>();
        let cannot = |reason: String| format!("could not download resource: {reason}");
        let declared = self.snapshot.meta().resources.iter().find(|(name, _)| name.as_str() == text);
        let Some((name, meta)) = declared else {
            return Err(CallError::NotFound(cannot(format!("resource {:?} not found", shown()))).into());
        };
        let ResourceKind::File { filename } = &meta.kind else {
            let text = format!("resource {text:?} is an image, and a sandbox runs no containers");
            return Err(CallError::NotSupported(cannot(text)).into());
        };
        let Some(content) = self.snapshot.application().resources.get(name) else {
            return Err(CallError::NotFound(cannot(format!("resource {text:?} has no content yet"))).into());
        };
        let key = ResourceKey { name: name.clone(), digest: content.digest };
        let file = ResourceFile {
            path: resource_path(name, filename),
            revision: content.revision,
            size: content.size,
            digest: content.digest,
        };
        self.resources.check(key)?;
        Ok(file)
    }
}
