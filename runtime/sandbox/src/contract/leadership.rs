//! The interface `leadership`.

use wasmtime::component::LinkerInstance;

use super::{host_call, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link_leader(interface, "is-leader", |context, now, (): &()| {
        context.is_leader(now).map(|result| result.map_err(Error::from))
    })?;
    host_call::link(interface, "get-settings", |context, _, (): ()| {
        Ok::<_, Error>(context.leader_get().into_iter().collect::<Vec<(String, String)>>())
    })?;
    host_call::link_leader(
        interface,
        "set-settings",
        |context, now, (changes,): &(Vec<(String, String)>,)| {
            context.leader_set(now, changes).map(|result| result.map_err(Error::from))
        },
    )
}
