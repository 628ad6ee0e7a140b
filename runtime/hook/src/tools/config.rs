//! `config-get`

use serde_json::Value;

use super::{
    Output, Tool,
    call::{Call, OUTPUT},
    flags::{Flag, Kind},
};
use crate::{CallError, lease::Interruption};

pub(super) const CONFIG_GET: Tool = Tool {
    name: "config-get",
    arguments: "[<key>]",
    summary: "Print application configuration.",
    flags: &[
        OUTPUT,
        &[Flag { names: &["-a", "--all"], kind: Kind::Switch, help: "Print options that are unset, too" }],
    ],
    run: config_get,
};

fn config_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [key] = call.at_most()?;
    let all = call.flags.is_on("-a");
    let value = match key {
        Some(key) if all => {
            return Err(
                CallError::invalid(format!("cannot use argument --all together with key {key:?}")).into()
            );
        }
        Some(key) if key != "-" => call.run.config_value(key).map_or(Value::Null, |value| value.to_json()),
        _ => {
            let options = call.run.config_options().filter(|(_, value)| all || value.is_some());
            let json =
                options.map(|(key, value)| (key.to_owned(), value.map(|value| value.to_json()).into()));
            Value::Object(json.collect())
        }
    };
    Ok(format.print(&value).into())
}
