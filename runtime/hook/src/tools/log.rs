//! `juju-log`

use periapt_host_api::logs::LogLevel;

use super::{
    Output, Tool,
    call::{Call, silent},
    flags::{Flag, Kind},
};
use crate::{CallError, lease::Interruption};

pub(super) const JUJU_LOG: Tool = Tool {
    name: "juju-log",
    arguments: "<message>",
    summary: "Write a message to the unit's log.",
    flags: &[&[
        Flag { names: &["-l", "--log-level"], kind: Kind::Text("INFO"), help: "Send at the given level" },
        Flag { names: &["--debug"], kind: Kind::Switch, help: "Send at DEBUG" },
    ]],
    run: juju_log,
};

fn juju_log(call: Call<'_>) -> Result<Output, Interruption> {
    if call.arguments.is_empty() {
        return Err(CallError::invalid("no message specified").into());
    }
    let level = match call.flags.value("-l") {
        _ if call.flags.is_on("--debug") => LogLevel::Debug,
        None => LogLevel::Info,
        Some(given) => given.value.parse().unwrap_or_else(|()| {
            let warning = format!("unknown log level {:?}: INFO is used", truncate(&given.value));
            call.run.log(call.now, LogLevel::Warning, &warning);
            LogLevel::Info
        }),
    };
    call.run.log(call.now, level, &call.arguments.join(" "));
    Ok(silent())
}

fn truncate(text: &str) -> String {
    text.chars().take(64).collect()
}
