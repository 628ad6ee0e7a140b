//! The interface `storage`.

use periapt_host_api::{StorageId, storage::StorageKind as Kind};
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::storage::StorageInfo,
    host_call,
    types::{Error, StorageKind},
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "list", |context, _, (name,): (Option<String>,)| {
        context.storage_list(name.as_deref()).iter().map(StorageId::to_string).collect::<Vec<_>>()
    })?;
    host_call::link(interface, "get", |context, _, (id,): (String,)| {
        let info = context.storage_get(&id).map_err(Error::from)?;
        Ok::<_, Error>(StorageInfo { kind: info.kind.into(), location: info.location })
    })?;
    host_call::link(interface, "add", |context, _, (name, count): (String, u32)| {
        context.storage_add(&name, count).map_err(Error::from)
    })
}

impl From<Kind> for StorageKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Block => Self::Block,
            Kind::Filesystem => Self::Filesystem,
        }
    }
}
