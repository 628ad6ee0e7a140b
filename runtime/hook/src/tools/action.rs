//! `action-get`, `action-set`, `action-log`, `action-fail`

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
};
use crate::{CallError, actions::check_key, lease::Interruption};

pub(super) const ACTION_GET: Tool = Tool {
    name: "action-get",
    arguments: "[<key>[.<key>.<key>...]]",
    summary: "Print the action's parameters, or one of them.",
    flags: &[OUTPUT],
    run: action_get,
};

pub(super) const ACTION_SET: Tool = Tool {
    name: "action-set",
    arguments: "<key>=<value> [<key>.<key>...=<value> ...]",
    summary: "Set results of the action.",
    flags: &[],
    run: action_set,
};

pub(super) const ACTION_LOG: Tool = Tool {
    name: "action-log",
    arguments: "<message>",
    summary: "Send a message to the operator who waits for the action, at once.",
    flags: &[],
    run: action_log,
};

pub(super) const ACTION_FAIL: Tool = Tool {
    name: "action-fail",
    arguments: "[\"<failure message>\"]",
    summary: "Say that the action failed; the last message counts.",
    flags: &[],
    run: action_fail,
};

fn action_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [path] = call.at_most()?;
    let value = match path {
        Some(path) => call.run.action_parameter(path)?.cloned().unwrap_or_default(),
        None => call.run.action_parameters()?.clone().into(),
    };
    Ok(format.print(&value).into())
}

fn action_set(call: Call<'_>) -> Result<Output, Interruption> {
    if call.arguments.is_empty() {
        return Err(CallError::invalid("no arguments specified").into());
    }
    let mut results = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        let (key, value) = argument.split_once('=').ok_or_else(|| {
            CallError::invalid(format!("argument {argument:?} must be of the form key...=value"))
        })?;
        check_key(key)?;
        results.push((key.to_owned(), value.to_owned()));
    }
    call.run.set_action_results(&results)?;
    Ok(silent())
}

fn action_log(call: Call<'_>) -> Result<Output, Interruption> {
    if call.arguments.is_empty() {
        return Err(CallError::invalid("no message specified").into());
    }
    call.run.log_action(call.now, &call.arguments.join(" "))?;
    Ok(silent())
}

fn action_fail(call: Call<'_>) -> Result<Output, Interruption> {
    let [message] = call.at_most()?;
    call.run.fail_action(message)?;
    Ok(silent())
}
