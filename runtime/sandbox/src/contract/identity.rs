//! The interface `identity`.

use wasmtime::component::LinkerInstance;

use super::{host_call, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "unit-name", |context, _, (): ()| context.unit().to_string())?;
    host_call::link(interface, "application-name", |context, _, (): ()| {
        context.unit().application().to_string()
    })?;
    host_call::link(interface, "principal-unit", |context, _, (): ()| {
        context.principal_unit().map(|unit| unit.to_string())
    })?;
    host_call::link(interface, "model-name", |context, _, (): ()| context.model_name())?;
    host_call::link(interface, "model-uuid", |context, _, (): ()| context.model_uuid())?;
    host_call::link(interface, "machine-id", |context, _, (): ()| context.machine_id())?;
    host_call::link(interface, "availability-zone", |context, _, (): ()| context.availability_zone())?;
    host_call::link(interface, "version", |context, _, (): ()| context.version())?;
    host_call::link(interface, "private-address", |context, _, (): ()| {
        context.private_address().map_err(Error::from)
    })?;
    host_call::link(interface, "public-address", |context, _, (): ()| {
        context.public_address().map_err(Error::from)
    })
}
