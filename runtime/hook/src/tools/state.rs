//! `state-get`, `state-set`, `state-delete`

use super::{
    Output, Tool,
    call::{Call, FILE, OUTPUT, silent},
    flags::{Flag, Kind},
    key_value,
};
use crate::{CallError, lease::Interruption};

pub(super) const STATE_GET: Tool = Tool {
    name: "state-get",
    arguments: "[<key> | -]",
    summary: "Print what the charm stored for its unit.",
    flags: &[
        OUTPUT,
        &[Flag { names: &["--strict"], kind: Kind::Switch, help: "Fail if the key is not there" }],
    ],
    run: state_get,
};

pub(super) const STATE_SET: Tool = Tool {
    name: "state-set",
    arguments: "[<key>=<value> ...]",
    summary: "Store values for the unit, until it is removed; an empty value is a value.",
    flags: &[FILE],
    run: state_set,
};

pub(super) const STATE_DELETE: Tool = Tool {
    name: "state-delete",
    arguments: "<key>",
    summary: "Delete what the charm stored under a key.",
    flags: &[],
    run: state_delete,
};

fn state_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [key] = call.at_most()?;
    let value = match key {
        None | Some("-") => call.run.state().into_iter().collect(),
        Some(key) => match call.run.state_value(key) {
            None if call.flags.is_on("--strict") => {
                return Err(CallError::NotFound(format!("{key:?} not found")).into());
            }
            // Without `--strict` an absent key prints as an empty text, in every format.
            value => value.unwrap_or_default().into(),
        },
    };
    Ok(format.print(&value).into())
}

fn state_set(mut call: Call<'_>) -> Result<Output, Interruption> {
    let arguments = key_value::parse(&call.arguments)?;
    let mut changes = call.file()?;
    changes.extend(arguments);
    call.run.set_state(changes)?;
    Ok(silent())
}

fn state_delete(call: Call<'_>) -> Result<Output, Interruption> {
    let [key] = call.at_most()?;
    let key = key.filter(|key| !key.is_empty()).ok_or_else(|| CallError::invalid("no key specified"))?;
    call.run.delete_state(key)?;
    Ok(silent())
}
