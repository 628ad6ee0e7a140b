//! The interface `state`.

use wasmtime::component::LinkerInstance;

use super::{door, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    door::link(interface, "get", |context, _, (key,): (String,)| context.state_get(&key))?;
    door::link(interface, "get-all", |context, _, (): ()| {
        context.state_get_all().into_iter().collect::<Vec<(String, String)>>()
    })?;
    door::link(interface, "set", |context, _, (changes,): (Vec<(String, String)>,)| {
        context.state_set(&changes).map_err(Error::from)
    })?;
    door::link(interface, "delete", |context, _, (key,): (String,)| {
        context.state_delete(&key).map_err(Error::from)
    })
}
