//! `relation-get`, `relation-set`

use periapt_host_api::{ApplicationName, UnitName};

use super::{
    Output, Tool,
    call::{APP, Call, FILE, OUTPUT, RELATION},
    flags::{Flag, Kind},
    key_value,
};
use crate::{BagSelector, CallError, OwnBag, lease::Interruption};

pub(super) const RELATION_GET: Tool = Tool {
    name: "relation-get",
    arguments: "[<key> | -] [<unit> | <application>]",
    summary: "Print the settings of a unit or an application in a relation.",
    flags: &[OUTPUT, RELATION, APP],
    run: relation_get,
};

pub(super) const RELATION_SET: Tool = Tool {
    name: "relation-set",
    arguments: "[<key>=<value> ...]",
    summary: "Write the unit's or its application's settings in a relation; an empty value deletes its key.",
    flags: &[
        RELATION,
        APP,
        FILE,
        &[Flag { names: &["--format"], kind: Kind::Text(""), help: "Deprecated, of no effect" }],
    ],
    run: relation_set,
};

fn relation_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let relation = call.relation()?;
    let [key, whose] = call.at_most()?;
    let bag = bag(&call, whose)?;
    let value = match key {
        None | Some("-") => call.run.bag(call.now, relation, &bag)?.into_iter().collect(),
        Some(key) => call.run.bag_value(call.now, relation, &bag, key)?.into(),
    };
    Ok(format.print(&value).into())
}

/// Returns the bag to read: the named one, else that of the hook's remote unit, else that of the remote
/// application.
fn bag(call: &Call<'_>, whose: Option<&str>) -> Result<BagSelector, CallError> {
    let of_application = call.flags.is_on("--app");
    match whose {
        Some(name) if of_application => Ok(BagSelector::Application(application_of(name)?)),
        Some(name) => Ok(BagSelector::Unit(name.to_owned())),
        None => {
            let remote_unit = call.run.hook_remote_unit().filter(|_| !of_application);
            let context = call.run.hook_relation();
            match (remote_unit, context) {
                (Some(unit), _) => Ok(BagSelector::Unit(unit.to_string())),
                (None, Some(context)) => Ok(BagSelector::Application(context.remote_application.to_string())),
                (None, None) => Err(CallError::invalid("no unit or application specified")),
            }
        }
    }
}

/// Returns the application of a name. With `--app` a unit stands for its application.
fn application_of(name: &str) -> Result<String, CallError> {
    if let Ok(unit) = name.parse::<UnitName>() {
        return Ok(unit.application().to_string());
    }
    match ApplicationName::new(name) {
        Ok(application) => Ok(application.to_string()),
        Err(_) => Err(CallError::invalid(format!("invalid unit or application name {name:?}"))),
    }
}

fn relation_set(mut call: Call<'_>) -> Result<Output, Interruption> {
    let relation = call.relation()?;
    let arguments = key_value::parse(&call.arguments)?;
    let mut changes = call.file()?;
    changes.extend(arguments);
    let bag = if call.flags.is_on("--app") { OwnBag::Application } else { OwnBag::Unit };
    call.run.write_bag(call.now, relation, bag, changes)?;
    let deprecated =
        call.flags.value("--format").map(|_| "--format flag deprecated for command \"relation-set\"\n");
    Ok(Output { stdout: String::new(), stderr: deprecated.unwrap_or_default().to_owned() })
}
