//! The interface `resources`.

use periapt_hook::ResourceFile as File;
use wasmtime::component::LinkerInstance;

use super::{bindings::periapt::charm::resources::ResourceFile, host_call, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link_leader(interface, "get", |context, _, (name,): &(String,)| {
        context.resource_get(name).map(|result| result.map(ResourceFile::from).map_err(Error::from))
    })
}

impl From<File> for ResourceFile {
    fn from(file: File) -> Self {
        Self {
            path: file.path,
            // No resource reaches this many revisions.
            revision: u32::try_from(file.revision).unwrap_or(u32::MAX),
            size: file.size,
            sha256: file.digest.to_string(),
        }
    }
}
