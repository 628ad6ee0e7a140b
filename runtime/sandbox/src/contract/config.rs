//! The interface `config`.

use periapt_host_api::settings::OptionValue;
use wasmtime::component::LinkerInstance;

use super::{bindings::periapt::charm::config::Value, host_call};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "get", |context, _, (key,): (String,)| {
        context.config_get(&key).map(Value::from)
    })?;
    host_call::link(interface, "get-all", |context, _, (): ()| {
        let options = context.config_get_all().into_iter();
        options.map(|(key, value)| (key, value.into())).collect::<Vec<(String, Value)>>()
    })
}

impl From<OptionValue> for Value {
    fn from(value: OptionValue) -> Self {
        match value {
            OptionValue::Text(text) => Self::Text(text),
            OptionValue::Integer(number) => Self::Integer(number),
            OptionValue::Number(number) => Self::Number(number),
            OptionValue::Boolean(truth) => Self::Boolean(truth),
            OptionValue::Secret(uri) => Self::Secret(uri),
        }
    }
}
