//! A charm whose code is in memory for as long as somebody holds it.

use std::path::PathBuf;

use periapt_host_api::Digest;
use periapt_sandbox::WeakArtifact;

use crate::protocol::{ReadyCharm, ReadyModule};

/// A charm in place, without holding its code.
#[derive(Debug)]
pub(super) struct WeakCharm {
    digest: Digest,
    component: Digest,
    directory: PathBuf,
    artefact: Option<WeakArtifact>,
    modules: Vec<(Digest, Option<WeakArtifact>)>,
}

impl WeakCharm {
    /// Of a charm whose code the caller holds.
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

    /// The charm, if all of its code is in memory still.
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
