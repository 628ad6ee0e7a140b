//! Calls of the SDK, by function names and arguments in the journal's form.

use periapt_sdk::{
    ActionEvent, Bag, Config, Error, Event, FromConfig, FromParam, OwnBag, Ports, Refusal, Relation, Result,
    Status, Unit, Value as OptionValue, Workload,
};
use serde_json::{Value, json};

use crate::secrets;

struct All(Vec<(String, OptionValue)>);

impl FromConfig for All {
    fn from_config(config: &Config) -> Result<Self> {
        Ok(Self(config.all()))
    }
}

pub(crate) fn call(unit: &Unit, event: &Event, function: &str, arguments: &Value) -> Value {
    let text = |index: usize| arguments[index].as_str().unwrap_or_default();
    let pairs = |value: &Value| -> Vec<(String, String)> { serde_json::from_value(value.clone()).unwrap() };
    let relation = || relation(unit, event, u32::try_from(arguments[0].as_u64().unwrap()).unwrap());
    match function {
        "config.get" => {
            let All(all) = unit.config().unwrap();
            all.iter().find(|(key, _)| key == text(0)).map_or(Value::Null, |(_, value)| option(value))
        }
        "config.get-all" => {
            let All(all) = unit.config().unwrap();
            all.iter().map(|(key, value)| json!([key, option(value)])).collect()
        }
        "relations.ids" => unit.relations(text(0)).iter().map(Relation::id).collect(),
        "relations.remote-application" => journal_form(relation().remote_app()),
        "relations.members" => journal_form(relation().members()),
        "relations.get" => journal_form(read(&relation(), &arguments[1], Bag::all)),
        "relations.get-value" => {
            journal_form(read(&relation(), &arguments[1], |bag| bag.get::<String>(text(2))))
        }
        "relations.set" => journal_form(own_bag(&relation(), text(1)).set_all(pairs(&arguments[2]))),
        "ports.open" => journal_form(unit.open_for(ports(&arguments[0]), &endpoints(&arguments[1]))),
        "ports.close" if arguments[1] == json!([]) => journal_form(unit.close(ports(&arguments[0]))),
        "ports.opened" => {
            unit.opened_ports().iter().map(|open| json!({"range": open.ports.to_string()})).collect()
        }
        "status.set" => journal_form(unit.set_status(&status(text(0), text(1)))),
        "status.get" => {
            let status = unit.status().unwrap().unwrap();
            let (word, message) = (format!("{:?}", status.workload).to_lowercase(), status.message);
            json!({"status": word.rsplit("::").next(), "message": message, "since": "1970-01-01T00:00:00Z"})
        }
        "status.set-application" => journal_form(unit.set_app_status(&status(text(0), text(1)))),
        "status.set-application-version" => journal_form(unit.set_version(text(0))),
        "leadership.is-leader" => journal_form(unit.is_leader()),
        "state.get" => json!(unit.state().get(text(0))),
        "state.get-all" => json!(unit.state().all()),
        "state.set" => journal_form(unit.state().set_all(pairs(&arguments[0]))),
        "state.delete" => journal_form(unit.state().delete(text(0))),
        "storage.add" => {
            journal_form(unit.add_storage(text(0), u32::try_from(arguments[1].as_u64().unwrap()).unwrap()))
        }
        "identity.private-address" => journal_form(unit.address()),
        "identity.public-address" => journal_form(unit.public_address()),
        "log.write" => {
            periapt_sdk::write_log(periapt_sdk::Level::Info, text(1));
            json!({"Ok": null})
        }
        _ if function.starts_with("actions.") => action(event, function, arguments),
        _ => secrets::call(unit, event, function, arguments),
    }
}

fn action(event: &Event, function: &str, arguments: &Value) -> Value {
    let text = arguments[0].as_str().unwrap_or_default();
    // Outside of an action a charm has no such event; the test makes the calls all the same.
    let event = match event {
        Event::Action(event) => event.clone(),
        _ => ActionEvent { name: String::new(), id: String::new() },
    };
    let parsed = |json: String| serde_json::from_str::<Value>(&json).unwrap();
    match function {
        "actions.params" => journal_form(event.params_json().map(parsed)),
        "actions.param" => journal_form(event.param::<Json>(text).map(|Json(json)| json.map(parsed))),
        "actions.set-results" => {
            let results: Vec<(String, String)> = serde_json::from_value(arguments[0].clone()).unwrap();
            journal_form(event.set_all(results))
        }
        "actions.log" => journal_form(event.log(text)),
        "actions.fail" => journal_form(event.fail(text)),
        other => panic!("no such function: {other}"),
    }
}

/// A parameter as JSON text.
struct Json(Option<String>);

impl FromParam for Json {
    const EXPECTED: &'static str = "anything";

    fn from_json(json: Option<&str>) -> Option<Self> {
        Some(Self(json.map(str::to_owned)))
    }
}

/// Returns an answer in the journal's form.
pub(crate) fn journal_form<T: serde::Serialize>(answer: Result<T>) -> Value {
    match answer {
        Ok(value) => json!({"Ok": value}),
        Err(error) => json!({"Err": refusal(&error)}),
    }
}

fn refusal(error: &Error) -> Value {
    let (kind, text) = match error.refusal().unwrap_or_else(|| panic!("{error}")) {
        Refusal::InvalidArgument(text) => ("invalid-argument", text),
        Refusal::NotFound(text) => ("not-found", text),
        Refusal::PermissionDenied(text) => ("permission-denied", text),
        Refusal::NotLeader(text) => ("not-leader", text),
        Refusal::Conflict(text) => ("conflict", text),
        Refusal::AlreadyExists(text) => ("already-exists", text),
        Refusal::LimitExceeded(text) => ("limit-exceeded", text),
        Refusal::NotReady(text) => ("not-ready", text),
        Refusal::WrongContext(text) => ("wrong-context", text),
        other => panic!("{other:?}"),
    };
    json!({kind: text})
}

fn option(value: &OptionValue) -> Value {
    match value {
        OptionValue::Text(text) => json!({"text": text}),
        OptionValue::Integer(number) => json!({"integer": number}),
        OptionValue::Number(number) => json!({"number": number}),
        OptionValue::Boolean(truth) => json!({"boolean": truth}),
        OptionValue::Secret(uri) => json!({"secret": uri}),
    }
}

/// Returns a relation of the unit by its number. The event's own relation may be broken.
pub(crate) fn relation(unit: &Unit, event: &Event, id: u32) -> Relation {
    let all = ["db", "ring"].into_iter().flat_map(|endpoint| unit.relations(endpoint));
    let mut all = all.chain(event.relation().cloned());
    all.find(|relation| relation.id() == id).unwrap()
}

fn read<T>(relation: &Relation, whose: &Value, read: impl FnOnce(&Bag) -> Result<T>) -> Result<T> {
    match (whose["unit"].as_str(), whose["application"].as_str()) {
        (Some("a/0"), _) => read(&relation.unit_bag()),
        (Some(unit), _) => read(&relation.member_bag(unit)),
        (None, Some("a")) => read(&relation.app_bag()),
        (None, _) => read(&relation.remote_app_bag()?),
    }
}

fn own_bag(relation: &Relation, whose: &str) -> OwnBag {
    if whose == "unit" { relation.unit_bag() } else { relation.app_bag() }
}

fn ports(value: &Value) -> Ports {
    let bound = |kind: &str, index: usize| u16::try_from(value[kind][index].as_u64().unwrap()).unwrap();
    match value {
        Value::Object(map) if map.contains_key("tcp") => Ports::Tcp(bound("tcp", 0), bound("tcp", 1)),
        Value::Object(_) => Ports::Udp(bound("udp", 0), bound("udp", 1)),
        _ => Ports::Icmp,
    }
}

fn endpoints(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

fn status(word: &str, message: &str) -> Status {
    let workload = match word {
        "active" => Workload::Active,
        "blocked" => Workload::Blocked,
        "waiting" => Workload::Waiting,
        _ => Workload::Maintenance,
    };
    Status { workload, message: message.to_owned() }
}
