//! `emit-later`, `emit-cancel`, `emit-list`: later events, which a charm schedules for itself. They are Periapt's own;
//! Juju has no such tools.

use periapt_host_api::{EventId, RelationId, duration, pending::Condition, relation::BagOwner};
use serde_json::{Map, Value, json};

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
    flags::{Flag, GivenFlag, Kind},
};
use crate::{BagSelector, CallError, DueCondition, LaterEvent, lease::Interruption};

pub(super) const EMIT_LATER: Tool = Tool {
    name: "emit-later",
    arguments: "<name>",
    summary: "Have the hook <name> run once, later: after a time, or when something is no more as this hook sees it, whichever \
              comes first. Prints the event's number. It is asked for when this hook succeeds.\n\n\
              emit-later retry --after 10m --data '{\"tries\": 2}'\n\
              emit-later look --when-relation db:3:host --of mysql/0 --after 1h",
    flags: &[&[
        Flag {
            names: &["--after"],
            kind: Kind::Text(""),
            help: "Run it so long after this hook: 90s, 10m, 1h30m; one second to a year",
        },
        Flag {
            names: &["--when-config"],
            kind: Kind::Text(""),
            help: "Run it when the option has another value",
        },
        Flag {
            names: &["--when-relation"],
            kind: Kind::Text(""),
            help: "Run it when the key has another value, in the settings of the remote application or of the one that --of \
                   names, or when the relation is removed",
        },
        Flag {
            names: &["--of"],
            kind: Kind::Text(""),
            help: "The unit or application whose settings --when-relation watches",
        },
        Flag {
            names: &["--when-leader"],
            kind: Kind::Switch,
            help: "Run it when another unit leads the application",
        },
        Flag { names: &["--data"], kind: Kind::Text("null"), help: "The event's data for the hook, as JSON" },
    ]],
    run: emit_later,
};

pub(super) const EMIT_CANCEL: Tool = Tool {
    name: "emit-cancel",
    arguments: "<number>",
    summary: "Take back an event that emit-later asked for.",
    flags: &[],
    run: emit_cancel,
};

pub(super) const EMIT_LIST: Tool = Tool {
    name: "emit-list",
    arguments: "",
    summary: "Print the events that emit-later asked for and that were not told yet, by number.",
    flags: &[OUTPUT],
    run: emit_list,
};

fn emit_later(call: Call<'_>) -> Result<Output, Interruption> {
    let [name] = call.at_most()?;
    let name = name.ok_or_else(|| CallError::invalid("no event name specified"))?.to_owned();
    let text = |flag: &str| call.flags.value(flag).map(|given| given.value.clone());
    let after_ms = call.flags.value("--after").map(after).transpose()?;
    let relation =
        call.flags.value("--when-relation").map(|given| when_relation(&call, given)).transpose()?;
    if relation.is_none() && call.flags.value("--of").is_some() {
        return Err(CallError::invalid(
            "--of names whose settings --when-relation watches: give --when-relation too",
        )
        .into());
    }
    let config = text("--when-config").map(DueCondition::Config);
    let leader = call.flags.is_on("--when-leader").then_some(DueCondition::Leader);
    let when = [config, relation, leader].into_iter().flatten().collect();
    let later = LaterEvent { name, data: text("--data"), after_ms, when };
    let id = call.run.emit_later(call.now, &later)?;
    Ok(format!("{id}\n").into())
}

fn emit_cancel(call: Call<'_>) -> Result<Output, Interruption> {
    let [id] = call.at_most()?;
    let id = id.ok_or_else(|| CallError::invalid("no event number specified"))?;
    let id: EventId = id.parse().map_err(|_| CallError::invalid(format!("invalid event number {id:?}")))?;
    call.run.cancel_event(id)?;
    Ok(silent())
}

fn emit_list(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [] = call.at_most()?;
    let events = call.run.pending_events().into_iter().map(|(id, event)| {
        let mut shown = Map::new();
        shown.insert("name".to_owned(), event.name.clone().into());
        shown.insert("data".to_owned(), event.data.clone().into());
        if let Some(after) = event.after_ms {
            shown.insert("after-ms".to_owned(), after.into());
        }
        let conditions: Vec<Value> = event.conditions.iter().map(condition).collect();
        if !conditions.is_empty() {
            shown.insert("when".to_owned(), conditions.into());
        }
        (id.to_string(), Value::Object(shown))
    });
    let events: Map<String, Value> = events.collect();
    Ok(format.print(&events.into()).into())
}

fn condition(condition: &Condition) -> Value {
    match condition {
        Condition::Config { option, .. } => json!({"config": option}),
        Condition::Relation { relation, owner, key, .. } => {
            let of = match owner {
                BagOwner::Unit(unit) => unit.to_string(),
                BagOwner::Application(application) => application.to_string(),
            };
            json!({"relation": relation.0, "of": of, "key": key})
        }
        Condition::Leader { .. } => json!({"leader": true}),
    }
}

fn after(given: &GivenFlag) -> Result<u64, CallError> {
    let milliseconds = duration::parse(&given.value).ok().and_then(|it| u64::try_from(it.as_millis()).ok());
    milliseconds.ok_or_else(|| {
        let GivenFlag { name, value } = given;
        CallError::invalid(format!("invalid value {value:?} for option {name}: write 90s, 10m or 1h30m"))
    })
}

/// Parses `[ENDPOINT:]ID:KEY`, and ignores the endpoint.
fn when_relation(call: &Call<'_>, given: &GivenFlag) -> Result<DueCondition, CallError> {
    let GivenFlag { name, value } = given;
    let wrong = || {
        CallError::invalid(format!("invalid value {value:?} for option {name}: write ID:KEY or NAME:ID:KEY"))
    };
    let (first, rest) = value.split_once(':').ok_or_else(wrong)?;
    let (id, key) = match first.parse::<u32>() {
        Ok(id) => (id, rest),
        Err(_) => {
            let (id, key) = rest.split_once(':').ok_or_else(wrong)?;
            (id.parse().map_err(|_| wrong())?, key)
        }
    };
    let relation = RelationId(id);
    let known = call.run.relation(relation)?;
    let bag = match call.flags.value("--of") {
        Some(of) if of.value.contains('/') => BagSelector::Unit(of.value.clone()),
        Some(of) => BagSelector::Application(of.value.clone()),
        None => BagSelector::Application(known.remote_application.to_string()),
    };
    Ok(DueCondition::Relation { relation, bag, key: key.to_owned() })
}
