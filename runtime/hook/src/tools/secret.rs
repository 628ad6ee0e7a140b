//! `secret-get`, `secret-info-get`, `secret-ids`

use periapt_host_api::secret::SecretReader;
use serde_json::{Map, Value, json};

use super::{
    Output, Tool,
    call::{Call, OUTPUT},
    flags::{Flag, Kind},
};
use crate::{CallError, GetMode, NewOwner, SecretInfo, lease::Interruption};

pub(super) const LABEL: &[Flag] =
    &[Flag { names: &["--label"], kind: Kind::Text(""), help: "A label to name the secret by" }];

pub(super) const SECRET_GET: Tool = Tool {
    name: "secret-get",
    arguments: "[<URI>] [<key>[#base64]]",
    summary: "Print the content of a secret.",
    flags: &[
        OUTPUT,
        LABEL,
        &[
            Flag { names: &["--peek"], kind: Kind::Switch, help: "Show the latest revision just this time" },
            Flag {
                names: &["--refresh"],
                kind: Kind::Switch,
                help: "Show the latest revision, from now on, too",
            },
        ],
    ],
    run: secret_get,
};

pub(super) const SECRET_INFO_GET: Tool = Tool {
    name: "secret-info-get",
    arguments: "[<URI>]",
    summary: "Print what the owner of a secret knows of it, without its content.",
    flags: &[OUTPUT, LABEL],
    run: secret_info_get,
};

pub(super) const SECRET_IDS: Tool = Tool {
    name: "secret-ids",
    arguments: "",
    summary: "Print the URIs of the secrets that this unit looks after.",
    flags: &[OUTPUT],
    run: secret_ids,
};

/// Returns true if the tool's arguments or output hold secret content.
pub(super) fn is_confidential(name: &str) -> bool {
    matches!(name, "secret-add" | "secret-set" | "secret-get")
}

/// Returns the secret URI of the first argument.
pub(super) fn uri(argument: Option<&str>) -> Result<&str, CallError> {
    argument.filter(|uri| !uri.is_empty()).ok_or_else(|| CallError::invalid("missing secret URI"))
}

fn secret_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [uri, key] = call.at_most()?;
    let mode = match (call.flags.is_on("--peek"), call.flags.is_on("--refresh")) {
        (true, true) => {
            return Err(CallError::invalid("specify one of --peek or --refresh but not both").into());
        }
        (true, false) => GetMode::Peek,
        (false, true) => GetMode::Refresh,
        (false, false) => GetMode::Tracked,
    };
    let label = call.flags.value("--label").map(|given| given.value.as_str());
    let (id, label) = call.run.named_secret(uri, label)?;
    let content = call.run.secret_content(id, label, mode)?;
    let value = match key {
        None => json!(content.texts()),
        Some(key) => content
            .value(key)
            .map(Value::String)
            .ok_or_else(|| CallError::NotFound(format!("secret key value {key:?} not found")))?,
    };
    Ok(format.print(&value).into())
}

fn secret_info_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [uri] = call.at_most()?;
    let label = call.flags.value("--label").map(|given| given.value.as_str());
    let info = call.run.secret_info(call.now, uri, label)?;
    let mut map = Map::new();
    map.insert(info.id.to_string(), describe(&call, &info));
    Ok(format.print(&Value::Object(map)).into())
}

fn describe(call: &Call<'_>, info: &SecretInfo) -> Value {
    let owner = match info.owner {
        NewOwner::Application => "application",
        NewOwner::Unit => "unit",
    };
    let access: Vec<Value> =
        info.access.iter().map(|(reader, relation)| access(call, reader, *relation)).collect();
    let mut map = Map::new();
    map.insert("revision".to_owned(), info.revision.0.into());
    map.insert("label".to_owned(), info.label.clone().unwrap_or_default().into());
    map.insert("owner".to_owned(), owner.into());
    if !info.description.is_empty() {
        map.insert("description".to_owned(), info.description.clone().into());
    }
    map.insert("rotation".to_owned(), info.rotation.as_str().into());
    for (name, time) in [("rotates", info.rotates), ("expiry", info.expiry)] {
        if let Some(time) = time {
            map.insert(name.to_owned(), time.to_string().into());
        }
    }
    if !access.is_empty() {
        map.insert("access".to_owned(), access.into());
    }
    Value::Object(map)
}

fn access(call: &Call<'_>, reader: &SecretReader, relation: periapt_host_api::RelationId) -> Value {
    json!({ "target": reader.tag(), "scope": call.run.relation_tag(relation), "role": "view" })
}

fn secret_ids(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [] = call.at_most()?;
    let ids: Value = call.run.secret_ids(call.now)?.iter().map(ToString::to_string).collect();
    Ok(format.print(&ids).into())
}
