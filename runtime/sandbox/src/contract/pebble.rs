//! The interface `pebble`.

use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::pebble::{Request, Response},
    host_call,
    types::Error,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "connect", |context, _, (container,): (String,)| {
        context.pebble_connect(&container).map_err(Error::from)
    })?;
    host_call::link(interface, "exchange", |context, _, (container, request): (String, Request)| {
        Err::<Response, _>(Error::from(context.pebble_exchange(&container, &request.method, &request.target)))
    })
}
