//! `relation-ids`, `relation-list`, `relation-batch`, `relation-model-get`

use serde_json::{Value, json};

use super::{
    Output, Tool,
    call::{Call, OUTPUT, RELATION},
    flags::{Flag, Kind},
};
use crate::{CallError, lease::Interruption};

pub(super) const RELATION_IDS: Tool = Tool {
    name: "relation-ids",
    arguments: "[<endpoint>]",
    summary: "List all relation ids of an endpoint; the hook's by default.",
    flags: &[OUTPUT],
    run: relation_ids,
};

pub(super) const RELATION_LIST: Tool = Tool {
    name: "relation-list",
    arguments: "",
    summary: "List the remote units of a relation.",
    flags: &[
        OUTPUT,
        RELATION,
        &[Flag { names: &["--app"], kind: Kind::Switch, help: "Print the remote application instead" }],
    ],
    run: relation_list,
};

pub(super) const RELATION_BATCH: Tool = Tool {
    name: "relation-batch",
    arguments: "",
    summary: "Print what a batch hook tells: which remote units joined, changed and departed since the last hook of the \
              relation, and whether the remote application's settings changed.",
    flags: &[OUTPUT],
    run: relation_batch,
};

pub(super) const RELATION_MODEL_GET: Tool = Tool {
    name: "relation-model-get",
    arguments: "",
    summary: "Print the model at the other end of a relation.",
    flags: &[OUTPUT, RELATION],
    run: relation_model_get,
};

fn relation_ids(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [endpoint] = call.at_most()?;
    let endpoint = match (endpoint, call.run.hook_relation()) {
        (Some(endpoint), _) => endpoint,
        (None, Some(context)) => context.endpoint.as_str(),
        (None, None) => return Err(CallError::invalid("no endpoint name specified").into()),
    };
    let ids = call.run.relation_ids(endpoint);
    let ids: Value = ids.into_iter().map(|id| format!("{endpoint}:{id}")).collect();
    Ok(format.print(&ids).into())
}

fn relation_list(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let relation = call.run.relation(call.relation()?)?;
    let [] = call.at_most()?;
    let value = match call.flags.is_on("--app") {
        true => relation.remote_application.as_str().into(),
        false => call.run.members(relation).iter().map(ToString::to_string).collect(),
    };
    Ok(format.print(&value).into())
}

fn relation_batch(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [] = call.at_most()?;
    let batch = call.run.relation_batch()?;
    let value = json!({
        "application-changed": batch.application_changed,
        "changed": batch.changed,
        "departed": batch.departed,
        "joined": batch.joined,
    });
    Ok(format.print(&value).into())
}

fn relation_model_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let relation = call.relation()?;
    let [] = call.at_most()?;
    let value = json!({"uuid": call.run.relation_model(relation).to_string()});
    Ok(format.print(&value).into())
}
