//! `status-set`, `status-get`

use periapt_host_api::status::{StatusInfo, WorkloadStatus};
use serde_json::{Map, Value, json};

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
    flags::{Flag, Kind},
    format::Format,
};
use crate::{ApplicationStatuses, CallError, CharmStatus, lease::Interruption};

const APPLICATION: &[Flag] = &[Flag {
    names: &["--application"],
    kind: Kind::Switch,
    help: "Speak of the application; only its leader may",
}];

pub(super) const STATUS_SET: Tool = Tool {
    name: "status-set",
    arguments: "<maintenance | blocked | waiting | active> [<message>]",
    summary: "Set the status of the unit's workload, at once.",
    flags: &[APPLICATION],
    run: status_set,
};

pub(super) const STATUS_GET: Tool = Tool {
    name: "status-get",
    arguments: "",
    summary: "Print the status of the unit's workload.",
    flags: &[
        OUTPUT,
        APPLICATION,
        &[Flag { names: &["--include-data"], kind: Kind::Switch, help: "Print message and data, too" }],
    ],
    run: status_get,
};

fn status_set(call: Call<'_>) -> Result<Output, Interruption> {
    let [status, message] = call.at_most()?;
    let word = status.ok_or_else(|| CallError::invalid("invalid args, require <status> [message]"))?;
    let (status, message) = (CharmStatus::parse(word)?, message.unwrap_or_default());
    match call.flags.is_on("--application") {
        true => call.run.set_application_status(call.now, status, message)?,
        false => call.run.set_unit_status(call.now, status, message)?,
    }
    Ok(silent())
}

fn status_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [] = call.at_most()?;
    let detail = match call.flags.is_on("--include-data") {
        true => Detail::WithData,
        false => Detail::StatusAlone,
    };
    let bare = format == Format::Smart && detail == Detail::StatusAlone;
    let value = if call.flags.is_on("--application") {
        let status = call.run.application_status(call.now)?;
        match bare {
            true => status.application.status.as_str().into(),
            false => of_application(&status, detail),
        }
    } else {
        let status = call.run.unit_status();
        match bare {
            true => status.status.as_str().into(),
            false => Value::Object(details(&status, detail)),
        }
    };
    Ok(format.print(&value).into())
}

/// The part of a status that `status-get` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    StatusAlone,
    /// With message and data.
    WithData,
}

fn of_application(status: &ApplicationStatuses, detail: Detail) -> Value {
    let units = status.units.iter();
    let units: Map<String, Value> =
        units.map(|(unit, status)| (unit.to_string(), details(status, detail).into())).collect();
    let mut application = details(&status.application, detail);
    application.insert("units".to_owned(), units.into());
    json!({"application-status": application})
}

fn details(status: &StatusInfo<WorkloadStatus>, detail: Detail) -> Map<String, Value> {
    let mut details = Map::from_iter([("status".to_owned(), status.status.as_str().into())]);
    if detail == Detail::WithData {
        details.insert("message".to_owned(), status.message.clone().into());
        details.insert("status-data".to_owned(), status.data.clone().into());
    }
    details
}
