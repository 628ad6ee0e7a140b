//! The interface `actions`.

use wasmtime::component::LinkerInstance;

use super::{host_call, types::Error};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "params", |context, _, (): ()| {
        context
            .action_params()
            .map(|params| serde_json::Value::Object(params).to_string())
            .map_err(Error::from)
    })?;
    host_call::link(interface, "param", |context, _, (path,): (String,)| {
        let value = context.action_param(&path);
        value.map(|value| value.map(|value| value.to_string())).map_err(Error::from)
    })?;
    host_call::link(interface, "set-results", |context, _, (results,): (Vec<(String, String)>,)| {
        context.action_set(&results).map_err(Error::from)
    })?;
    host_call::link(interface, "log", |context, now, (message,): (String,)| {
        context.action_log(now, &message).map_err(Error::from)
    })?;
    host_call::link(interface, "fail", |context, _, (message,): (Option<String>,)| {
        context.action_fail(message.as_deref()).map_err(Error::from)
    })
}
