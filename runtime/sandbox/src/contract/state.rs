//! The interface `state`.

use wasmtime::component::LinkerInstance;

use super::{host_call, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "get", |context, _, (key,): (String,)| context.state_get(&key))?;
    host_call::link(interface, "get-all", |context, _, (): ()| {
        context.state_get_all().into_iter().collect::<Vec<(String, String)>>()
    })?;
    host_call::link(interface, "set", |context, _, (changes,): (Vec<(String, String)>,)| {
        context.state_set(&changes).map_err(Error::from)
    })?;
    host_call::link(interface, "delete", |context, _, (key,): (String,)| {
        context.state_delete(&key).map_err(Error::from)
    })
}
