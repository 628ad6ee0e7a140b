//! `storage-get`, `storage-list`, `storage-add`

use periapt_host_api::{StorageName, storage::StorageDirective};
use serde_json::json;

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
    flags::{Flag, Initial, Kind},
};
use crate::{CallError, lease::Interruption};

pub(super) const STORAGE_GET: Tool = Tool {
    name: "storage-get",
    arguments: "[<key>]",
    summary: "Print information for the storage instance with the specified ID; the hook's by default.",
    flags: &[
        OUTPUT,
        &[Flag {
            names: &["-s"],
            kind: Kind::Value(Initial::Storage),
            help: "Specify a storage instance by id",
        }],
    ],
    run: storage_get,
};

pub(super) const STORAGE_LIST: Tool = Tool {
    name: "storage-list",
    arguments: "[<storage name>]",
    summary: "List storage attached to the unit.",
    flags: &[OUTPUT],
    run: storage_list,
};

pub(super) const STORAGE_ADD: Tool = Tool {
    name: "storage-add",
    arguments: "<charm storage name>[=count] ...",
    summary: "Add storage instances.",
    flags: &[],
    run: storage_add,
};

fn storage_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [key] = call.at_most()?;
    let storage = match (call.flags.value("-s"), call.run.hook_storage()) {
        (Some(given), _) => call.run.find_storage(&given.value).map_err(|_| {
            let (value, name) = (&given.value, given.name);
            CallError::invalid(format!("invalid value {value:?} for option {name}: storage not found"))
        })?,
        (None, Some(id)) => call.run.find_storage(&id.to_string())?,
        (None, None) => return Err(CallError::invalid("no storage instance specified").into()),
    };
    let info = call.run.storage_info(storage)?;
    let value = match key {
        None => json!({"kind": info.kind.to_string(), "location": info.location}),
        Some("kind") => info.kind.to_string().into(),
        Some("location") => info.location.into(),
        Some(other) => return Err(CallError::Failed(format!("invalid storage attribute {other:?}")).into()),
    };
    Ok(format.print(&value).into())
}

fn storage_list(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [name] = call.at_most()?;
    let ids = call.run.storage_ids(name);
    Ok(format.print(&ids.iter().map(ToString::to_string).collect()).into())
}

fn storage_add(call: Call<'_>) -> Result<Output, Interruption> {
    if call.arguments.is_empty() {
        return Err(CallError::invalid("storage add requires a storage directive").into());
    }
    let requests: Vec<_> =
        call.arguments.iter().map(|argument| request(argument)).collect::<Result<_, _>>()?;
    call.run.add_storage(&requests)?;
    Ok(silent())
}

/// Parses `NAME` or `NAME=COUNT`. Pool and size are the operator's choice.
fn request(argument: &str) -> Result<(StorageName, u32), CallError> {
    let (name, directive) = match argument.split_once('=') {
        Some((name, directive)) => (name, Some(directive)),
        None => (argument, None),
    };
    let parsed = StorageName::new(name).map_err(|error| CallError::invalid(error.to_string()))?;
    let Some(text) = directive else { return Ok((parsed, 1)) };
    let directive: StorageDirective = text.parse().map_err(|error| {
        CallError::invalid(format!("cannot parse constraints for storage {name:?}: {error}"))
    })?;
    match directive {
        StorageDirective { pool: None, size: None, count: Some(count) } => Ok((parsed, count)),
        _ => Err(CallError::invalid(format!("only count can be specified for {name:?}"))),
    }
}
