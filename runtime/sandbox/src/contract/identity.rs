//! The interface `identity`.

use wasmtime::component::LinkerInstance;

use super::{door, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    door::link(interface, "unit-name", |context, _, (): ()| context.unit().to_string())?;
    door::link(interface, "application-name", |context, _, (): ()| context.unit().application().to_string())?;
    door::link(interface, "principal-unit", |context, _, (): ()| {
        context.principal_unit().map(|unit| unit.to_string())
    })?;
    door::link(interface, "model-name", |context, _, (): ()| context.model_name())?;
    door::link(interface, "model-uuid", |context, _, (): ()| context.model_uuid())?;
    door::link(interface, "machine-id", |context, _, (): ()| context.machine_id())?;
    door::link(interface, "availability-zone", |context, _, (): ()| context.availability_zone())?;
    door::link(interface, "version", |context, _, (): ()| context.version().to_owned())?;
    door::link(interface, "private-address", |context, _, (): ()| {
        context.private_address().map_err(Error::from)
    })?;
    door::link(interface, "public-address", |context, _, (): ()| {
        context.public_address().map_err(Error::from)
    })
}
