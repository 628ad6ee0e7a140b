//! A weak reference to a charm whose code is in memory.

use std::path::PathBuf;

use periapt_host_api::Digest;
use periapt_sandbox::WeakArtifact;

use crate::protocol::{ReadyCharm, ReadyModule};

/// A ready charm, without a reference to its code.
#[derive(Debug)]
pub(super) struct WeakCharm {
    digest: Digest,
    component: Digest,
    directory: PathBuf,
    artefact: Option<WeakArtifact>,
    modules: Vec<(Digest, Option<WeakArtifact>)>,
}

impl WeakCharm {
    /// Creates a weak reference.
    pub(super) fn of(ready: &ReadyCharm) -> Self {
        let ReadyCharm { digest, component, directory, artefact, modules } = ready;
        let weak =
            |module: &ReadyModule| (module.digest, module.artefact.as_ref().map(|held| held.downgrade()));
        Self {
            digest: *digest,
            component: *component,
            directory: directory.clone(),
            artefact: artefact.as_ref().map(|held| held.downgrade()),
            modules: modules.iter().map(weak).collect(),
        }
    }

    /// Returns the charm if all of its code is still in memory.
    pub(super) fn upgrade(&self) -> Option<ReadyCharm> {
        let held = |weak: &Option<WeakArtifact>| weak.as_ref()?.upgrade();
        let modules = self
            .modules
            .iter()
            .map(|(digest, weak)| Some(ReadyModule { digest: *digest, artefact: Some(held(weak)?) }));
        Some(ReadyCharm {
            digest: self.digest,
            component: self.component,
            directory: self.directory.clone(),
            artefact: Some(held(&self.artefact)?),
            modules: modules.collect::<Option<_>>()?,
        })
    }
}
