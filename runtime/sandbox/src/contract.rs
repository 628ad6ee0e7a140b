//! The host functions of the contract. Each converts its arguments, calls the hook's context and converts the
//! answer. `periapt-hook` implements the calls.

mod actions;
mod config;
mod event;
mod events;
mod goal_state;
mod host_call;
mod identity;
mod leadership;
mod log;
mod network;
mod pebble;
mod ports;
mod relations;
mod resources;
mod secrets;
mod state;
mod status;
mod storage;
mod tools;
mod weight;
mod workloads;

use wasmtime::component::Linker;

use crate::state::HookState;

pub(crate) use bindings::{CharmPre, periapt::charm::types};
pub(crate) use event::invocation;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../host-api/wit",
        world: "charm",
        exports: { default: async },
    });
}

/// Links all interfaces of the contract.
pub(crate) fn link(linker: &mut Linker<HookState>) -> wasmtime::Result<()> {
    actions::link(&mut linker.instance("periapt:charm/actions@0.1.0")?)?;
    config::link(&mut linker.instance("periapt:charm/config@0.1.0")?)?;
    events::link(&mut linker.instance("periapt:charm/events@0.1.0")?)?;
    goal_state::link(&mut linker.instance("periapt:charm/goal-state@0.1.0")?)?;
    identity::link(&mut linker.instance("periapt:charm/identity@0.1.0")?)?;
    leadership::link(&mut linker.instance("periapt:charm/leadership@0.1.0")?)?;
    log::link(&mut linker.instance("periapt:charm/log@0.1.0")?)?;
    network::link(&mut linker.instance("periapt:charm/network@0.1.0")?)?;
    pebble::link(&mut linker.instance("periapt:charm/pebble@0.1.0")?)?;
    ports::link(&mut linker.instance("periapt:charm/ports@0.1.0")?)?;
    relations::link(&mut linker.instance("periapt:charm/relations@0.1.0")?)?;
    resources::link(&mut linker.instance("periapt:charm/resources@0.1.0")?)?;
    state::link(&mut linker.instance("periapt:charm/state@0.1.0")?)?;
    secrets::link(&mut linker.instance("periapt:charm/secrets@0.1.0")?)?;
    status::link(&mut linker.instance("periapt:charm/status@0.1.0")?)?;
    storage::link(&mut linker.instance("periapt:charm/storage@0.1.0")?)?;
    tools::link(&mut linker.instance("periapt:charm/hook-tools@0.1.0")?)?;
    workloads::link(&mut linker.instance("periapt:charm/workloads@0.1.0")?)?;
    // This interface has only types, but components import it.
    linker.instance("periapt:charm/types@0.1.0")?;
    Ok(())
}
