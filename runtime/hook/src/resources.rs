//! Resources as one hook sees them (`docs/hook-model.md` 5.2): the declarations of the charm that the unit runs, with the
//! content of the snapshot. The host fetches a file at the first call, and it stays for the rest of the hook.

mod fetched;

pub(crate) use fetched::Resources;

use periapt_host_api::{
    Digest,
    charm::ResourceKind,
    resource::{ResourceKey, resource_path},
};
use serde::{Deserialize, Serialize};

use crate::{
    CallAnswer, CallError,
    context::{HookContext, HookRun},
    lease::Interruption,
};

/// The most characters of a name in an error.
const SHOWN: usize = 128;

/// The file of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceFile {
    /// The path of the file in the hook.
    pub path: String,
    /// The number of the content, which rises by one with each upload.
    pub revision: u64,
    /// The size in bytes.
    pub size: u64,
    /// The digest of the content.
    pub digest: Digest,
}

/// The typed interface: `resources`.
impl HookContext {
    /// Returns the file of a resource.
    pub fn resource_get(&mut self, name: &str) -> CallAnswer<Result<ResourceFile, CallError>> {
        self.leader_call("resources.get", (name,), |run| run.resource(name))
    }
}

impl HookRun {
    /// Returns the file of a resource.
    pub(crate) fn resource(&mut self, text: &str) -> Result<ResourceFile, Interruption> {
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
