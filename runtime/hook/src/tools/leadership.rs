//! `is-leader`, `leader-get`, `leader-set`

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
    key_value,
};
use crate::{CallError, lease::Interruption};

pub(super) const IS_LEADER: Tool = Tool {
    name: "is-leader",
    arguments: "",
    summary: "Print whether this unit leads its application, and goes on to for 30 seconds.",
    flags: &[OUTPUT],
    run: is_leader,
};

pub(super) const LEADER_GET: Tool = Tool {
    name: "leader-get",
    arguments: "[<key>]",
    summary: "Print application leadership settings.",
    flags: &[OUTPUT],
    run: leader_get,
};

pub(super) const LEADER_SET: Tool = Tool {
    name: "leader-set",
    arguments: "<key>=<value> [...]",
    summary: "Write application leadership settings; an empty value deletes its key.",
    flags: &[],
    run: leader_set,
};

fn is_leader(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [] = call.at_most()?;
    Ok(format.print(&call.run.is_leader(call.now)?.into()).into())
}

fn leader_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [key] = call.at_most()?;
    let value = match key {
        Some(key) if key.contains('=') => {
            return Err(CallError::invalid(format!("invalid key {key:?}")).into());
        }
        Some(key) if key != "-" => call.run.leader_setting(key).into(),
        _ => call.run.leader_settings().into_iter().collect(),
    };
    Ok(format.print(&value).into())
}

fn leader_set(call: Call<'_>) -> Result<Output, Interruption> {
    let changes = key_value::parse(&call.arguments)?;
    call.run.write_leader_settings(call.now, changes)?;
    Ok(silent())
}
