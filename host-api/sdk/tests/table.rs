//! The harness, asked what the table of hook tools asks of the host: a charm's tests are answered as its hooks will be.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

use std::cell::RefCell;

use periapt_sdk::{
    ActionEvent, Bag, Charm, Config, Error, Event, FromConfig, FromParam, GoalRelation, GoalState,
    GoalStatus, Outcome, OwnBag, Ports, Refusal, Relation, RelationBroken, RelationChanged, RelationCreated,
    RelationDeparted, RelationJoined, Result, Rotate, Secret, Status, Unit, Value as OptionValue, Workload,
    testing::Harness,
};
use serde_json::{Value, json};

use table::{Case, secret, tools, words};

#[allow(dead_code, reason = "what tools print is compared where the table is at home")]
#[path = "../../../runtime/hook/tests/it/table.rs"]
mod table;

/// What a harness has no counterpart of: bounds, other units of the machine, what operators do to a relation.
const NOT_IN_A_HARNESS: [&str; 9] =
    ["limit", "opened", "subordinate", "removed", "dying", "suspended", "option", "application", "addresses"];

/// Functions that the SDK has no word for or asks for by a builder of its own, or that answer with a place of the test's own.
const NOT_IN_THE_SDK: [&str; 12] = [
    "status.get-application",
    "leadership.get-settings",
    "leadership.set-settings",
    "identity.model-uuid",
    "network.get",
    "goal-state.get",
    "resources.get",
    "storage.get",
    "storage.list",
    "events.cancel",
    "events.emit-later",
    "events.pending",
];

/// What the plain world's charm declares.
const CHARM: &str = "
name: a
config:
  options:
    title: {type: string, default: hello}
    size: {type: int}
    ratio: {type: float, default: 0.5}
provides:
  web: http
requires:
  db: mysql
  unused: any
peers:
  ring: ring
storage:
  data: {type: filesystem}
  logs: {type: filesystem}
actions:
  backup:
    description: x
";

thread_local! {
    /// What the charm is to ask, and what it was told.
    static ASKED: RefCell<Option<(String, Value)>> = const { RefCell::new(None) };
    static TOLD: RefCell<Option<Value>> = const { RefCell::new(None) };
}

#[test]
fn a_harness_answers_typed_calls_as_the_table_says() {
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for tool in tools() {
        for case in tool.cases.iter().filter(|case| is_comparable(case)) {
            let Some((function, arguments)) = case.typed.iter().flatten().next() else { continue };
            asked += 1;
            let told = ask(case, function, arguments);
            let expected = match (&case.refused, &case.answer) {
                (Some(kind), _) => json!({"Err": {kind: case.error}}),
                (None, Some(answer)) => answer.clone(),
                (None, None) => json!({"Ok": null}),
            };
            if told != expected {
                let (name, about) = (&tool.name, &case.case);
                wrong
                    .push(format!("{name}: {about}: {function} {arguments}\n  is  {told}\n  not {expected}"));
            }
        }
    }
    assert!(asked > 80, "{asked} cases were compared");
    assert!(wrong.is_empty(), "{} of {asked} differ\n{}", wrong.len(), wrong.join("\n"));
}

fn is_comparable(case: &Case) -> bool {
    let odd =
        |given: &String| words(given).first().is_some_and(|word| NOT_IN_A_HARNESS.contains(&word.as_str()));
    let known = |function: &String| !NOT_IN_THE_SDK.contains(&function.as_str());
    // What an argv tool did before has no counterpart, and what fails only when it is committed has none either.
    // The SDK names no third application's bag, and says nothing of one endpoint's ports when it closes them; it
    // gives each failure a reason, and names each secret. A harness takes an action's parameters by their paths, and
    // tells batches by an event of their own.
    let unsaid = [
        "in a batch",
        "who does not exist",
        "the same of an application",
        "for one of",
        "a text by its path",
        "one is named",
    ];
    case.before.is_empty()
        && !unsaid.iter().any(|part| case.case.contains(part))
        && case
            .typed
            .iter()
            .flatten()
            .all(|(function, said)| function != "actions.fail" || !said[0].is_null())
        && !case.given.iter().any(odd)
        && !case.case.contains("when the hook commits")
        && case.typed.iter().flatten().all(|(function, _)| known(function))
}

/// Asks a harness in the case's scene.
fn ask(case: &Case, function: &str, arguments: &Value) -> Value {
    let mut scene = Scene::new(case);
    let event = scene.event(case.hook.as_deref());
    let arguments = scene.named(arguments);
    ASKED.set(Some((function.to_owned(), arguments)));
    let outcome = scene.harness.run(event);
    assert_eq!(outcome, Ok(Outcome::Handled), "{}", case.case);
    ASKED.set(None);
    scene.unnamed(&TOLD.take().unwrap())
}

/// The plain world of the table, in a harness.
struct Scene {
    harness: Harness<Asker>,
    db: Relation,
    /// URIs of the harness, and ids of the table.
    secrets: Vec<(String, String)>,
}

impl Scene {
    fn new(case: &Case) -> Self {
        let mut harness = Harness::<Asker>::new("a/0");
        harness.declares(CHARM).address(Some("10.0.0.9")).leader(true);
        harness.config("title", "hello").config("size", 80_i64).config("ratio", 0.5);
        harness.relate("unused", "nobody");
        let (db, ring) = (harness.relate("db", "b"), harness.relate("ring", "a"));
        harness.change_app(&db, &[("version", "8")]).unwrap();
        harness.change_app(&ring, &[("password", "p")]).unwrap();
        harness.join(&db, "b/0", &[("host", "10.0.0.4"), ("port", "3306")]).unwrap();
        harness.join(&db, "b/1", &[("host", "10.0.0.5")]).unwrap();
        harness.join(&ring, "a/1", &[("seed", "7")]).unwrap();
        harness.storage("data/0", "/srv/data".as_ref()).storage("logs/1", "/srv/logs/1".as_ref());
        harness.goal_state(GoalState {
            units: vec![("a/0".into(), GoalStatus { status: "active".into(), since: String::new() })],
            relations: Vec::<GoalRelation>::new(),
        });
        let mut scene = Self { harness, db, secrets: Vec::new() };
        scene.does("relations.set", json!([1, "unit", [["ingress-address", "10.0.0.9"]]]));
        scene.does("relations.set", json!([1, "application", [["database", "wp"]]]));
        scene.does("state.set", json!([[["seen", "1"], ["done", ""]]]));
        scene.does("status.set", json!(["active", "a/0"]));
        scene.secrets();
        let mut members = case.given.iter().map(|given| words(given));
        if let Some(members) = members.rfind(|words| words.first().is_some_and(|word| word == "members")) {
            scene.members(members.get(2..).unwrap_or_default());
        }
        scene.harness.leader(case.given.iter().any(|given| given == "leader"));
        scene
    }

    /// Makes a call in a hook of its own.
    fn does(&mut self, function: &str, arguments: Value) -> Value {
        ASKED.set(Some((function.to_owned(), arguments)));
        self.harness.run(Event::UpdateStatus).unwrap();
        ASKED.set(None);
        TOLD.take().unwrap()
    }

    fn secrets(&mut self) {
        let said = |label: &str| json!({"label": label, "description": "what it is", "rotate": "daily"});
        for (number, owner, label, value) in
            [(1, "unit", "own", "mine-1"), (4, "application", "ours", "ours-1")]
        {
            let made = self.does("secrets.add", json!([owner, [["password", value]], said(label)]));
            let uri = made["Ok"].as_str().unwrap().to_owned();
            self.does("secrets.grant", json!([uri, 1, "b/0"]));
            self.secrets.push((uri, secret(number).to_string()));
        }
        let theirs = self.harness.grant_secret(&[("password", "theirs-1")]);
        self.does("secrets.get", json!([theirs.uri(), "theirs", "tracked"]));
        self.harness.revise_secret(&theirs, &[("password", "theirs-2")]);
        let revoked = self.harness.grant_secret(&[("password", "x")]);
        self.harness.revoke_secret(&revoked);
        self.secrets.push((theirs.uri().to_owned(), secret(2).to_string()));
        self.secrets.push((revoked.uri().to_owned(), secret(3).to_string()));
    }

    fn members(&mut self, members: &[String]) {
        let db = self.db.clone();
        for unit in ["b/0", "b/1"].into_iter().filter(|unit| !members.iter().any(|member| member == unit)) {
            self.harness.depart(&db, unit).unwrap();
        }
        for unit in members {
            self.harness.join(&db, unit, &[]).unwrap();
        }
    }

    /// Has happened what the event tells of.
    fn event(&mut self, hook: Option<&str>) -> Event {
        let hook = words(hook.unwrap_or_default());
        let hook: Vec<&str> = hook.iter().map(String::as_str).collect();
        let (relation, app) = (self.db.clone(), "b".to_owned());
        match hook.as_slice() {
            [] => Event::UpdateStatus,
            ["created"] => Event::RelationCreated(RelationCreated { relation, app }),
            ["joined", unit] => {
                self.harness.join(&relation, unit, &[]).unwrap();
                Event::RelationJoined(RelationJoined { relation, app, unit: (*unit).to_owned() })
            }
            ["changed"] => Event::RelationChanged(RelationChanged { relation, app, unit: None }),
            ["changed", unit] => {
                Event::RelationChanged(RelationChanged { relation, app, unit: Some((*unit).to_owned()) })
            }
            ["departed", unit] => {
                self.harness.depart(&relation, unit).unwrap();
                let unit = (*unit).to_owned();
                Event::RelationDeparted(RelationDeparted { relation, app, departing: unit.clone(), unit })
            }
            ["broken"] => {
                self.harness.end(&relation).unwrap();
                Event::RelationBroken(RelationBroken { relation, app })
            }
            ["action"] => {
                let target = r#"{"dir":"/srv","tags":["a","b"]}"#;
                let params = [("level", "3"), ("fast", "true"), ("target", target)];
                self.harness.action("backup", &params).unwrap();
                Event::Action(ActionEvent { name: "backup".to_owned(), id: "7".to_owned() })
            }
            // Secrets' and storage's events say nothing that a call would answer.
            _ => Event::UpdateStatus,
        }
    }

    /// Ids of the table as the harness's.
    fn named(&self, value: &Value) -> Value {
        self.replaced(value, |(uri, id)| (id.as_str(), uri.strip_prefix("secret:").unwrap()))
    }

    fn unnamed(&self, value: &Value) -> Value {
        self.replaced(value, |(uri, id)| (uri.strip_prefix("secret:").unwrap(), id.as_str()))
    }

    fn replaced<'a>(
        &'a self,
        value: &Value,
        pair: impl Fn(&'a (String, String)) -> (&'a str, &'a str),
    ) -> Value {
        let mut text = value.to_string();
        for names in &self.secrets {
            let (from, to) = pair(names);
            text = text.replace(from, to);
        }
        // The next that the harness draws.
        let drawn = periapt_host_api::secret::SecretId::drawn(&[9; 32], 0).to_string();
        serde_json::from_str(&text.replace("00000000000000000005", &drawn)).unwrap()
    }
}

/// Asks what it is told to ask.
#[derive(Default)]
struct Asker;

impl Charm for Asker {
    fn otherwise(&mut self, unit: &Unit, event: &Event) -> Result {
        if let Some((function, arguments)) = ASKED.with_borrow(Clone::clone) {
            let told = call(unit, event, &function, &arguments);
            TOLD.set(Some(told));
        }
        Ok(())
    }
}

struct All(Vec<(String, OptionValue)>);

impl FromConfig for All {
    fn from_config(config: &Config) -> Result<Self> {
        Ok(Self(config.all()))
    }
}

fn call(unit: &Unit, event: &Event, function: &str, arguments: &Value) -> Value {
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
        "relations.remote-application" => told(relation().remote_app()),
        "relations.members" => told(relation().members()),
        "relations.get" => told(read(&relation(), &arguments[1], Bag::all)),
        "relations.get-value" => told(read(&relation(), &arguments[1], |bag| bag.get::<String>(text(2)))),
        "relations.set" => told(own_bag(&relation(), text(1)).set_all(pairs(&arguments[2]))),
        "ports.open" => told(unit.open_for(ports(&arguments[0]), &endpoints(&arguments[1]))),
        "ports.close" if arguments[1] == json!([]) => told(unit.close(ports(&arguments[0]))),
        "ports.opened" => {
            unit.opened_ports().iter().map(|open| json!({"range": open.ports.to_string()})).collect()
        }
        "status.set" => told(unit.set_status(&status(text(0), text(1)))),
        "status.get" => {
            let status = unit.status().unwrap().unwrap();
            let (word, message) = (format!("{:?}", status.workload).to_lowercase(), status.message);
            json!({"status": word.rsplit("::").next(), "message": message, "since": "1970-01-01T00:00:00Z"})
        }
        "status.set-application" => told(unit.set_app_status(&status(text(0), text(1)))),
        "status.set-application-version" => told(unit.set_version(text(0))),
        "leadership.is-leader" => told(unit.is_leader()),
        "state.get" => json!(unit.state().get(text(0))),
        "state.get-all" => json!(unit.state().all()),
        "state.set" => told(unit.state().set_all(pairs(&arguments[0]))),
        "state.delete" => told(unit.state().delete(text(0))),
        "storage.add" => {
            told(unit.add_storage(text(0), u32::try_from(arguments[1].as_u64().unwrap()).unwrap()))
        }
        "identity.private-address" => told(unit.address()),
        "identity.public-address" => told(unit.public_address()),
        "log.write" => {
            periapt_sdk::write_log(periapt_sdk::Level::Info, text(1));
            json!({"Ok": null})
        }
        _ if function.starts_with("actions.") => action(event, function, arguments),
        _ => secrets(unit, event, function, arguments),
    }
}

fn action(event: &Event, function: &str, arguments: &Value) -> Value {
    let text = arguments[0].as_str().unwrap_or_default();
    // Outside of an action a charm has no such event; what the calls answer then is asked all the same.
    let event = match event {
        Event::Action(event) => event.clone(),
        _ => ActionEvent { name: String::new(), id: String::new() },
    };
    let parsed = |json: String| serde_json::from_str::<Value>(&json).unwrap();
    match function {
        "actions.params" => told(event.params_json().map(parsed)),
        "actions.param" => told(event.param::<Json>(text).map(|Json(json)| json.map(parsed))),
        "actions.set-results" => {
            let results: Vec<(String, String)> = serde_json::from_value(arguments[0].clone()).unwrap();
            told(event.set_all(results))
        }
        "actions.log" => told(event.log(text)),
        "actions.fail" => told(event.fail(text)),
        other => panic!("no such function: {other}"),
    }
}

fn secrets(unit: &Unit, event: &Event, function: &str, arguments: &Value) -> Value {
    let text = |index: usize| arguments[index].as_str();
    let named = Secret::new(text(0).unwrap_or_default());
    let content = |content: periapt_sdk::SecretContent| -> Value {
        content.keys().map(|key| json!([key, content.text(key).unwrap()])).collect()
    };
    let values = |value: &Value| -> Vec<(String, String)> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    };
    match function {
        "secrets.add" => {
            let mut new = if text(0) == Some("unit") { unit.own_secret() } else { unit.app_secret() };
            for (key, value) in values(&arguments[1]) {
                new = new.value(key, value);
            }
            for (key, said) in arguments[2].as_object().into_iter().flatten() {
                let said = said.as_str().unwrap();
                new = match key.as_str() {
                    "label" => new.label(said),
                    "description" => new.description(said),
                    "rotate" => new.rotate(rotate(said)),
                    _ => new.expire(said),
                };
            }
            told(new.add().map(|secret| secret.uri().to_owned()))
        }
        "secrets.set" => {
            let mut change = named.change();
            for (key, value) in values(&arguments[1]) {
                change = change.value(key, value);
            }
            for (key, said) in arguments[2].as_object().into_iter().flatten() {
                let said = said.as_str().unwrap();
                change = match key.as_str() {
                    "label" => change.label(said),
                    "description" => change.description(said),
                    "rotate" => change.rotate(rotate(said)),
                    _ => change.expire(said),
                };
            }
            told(change.apply())
        }
        "secrets.get" => told(
            match (text(0), text(1), text(2)) {
                (Some(_), Some(label), _) => named.get_labelled(label),
                (Some(_), None, Some("peek")) => named.peek(),
                (Some(_), None, Some("refresh")) => named.refresh(),
                (Some(_), None, _) => named.get(),
                (None, label, _) => Secret::get_by_label(label.unwrap_or_default()),
            }
            .map(content),
        ),
        "secrets.info" => told(named.details().map(|details| {
            let access: serde_json::Map<String, Value> =
                details.access.into_iter().map(|access| (access.reader, access.relation.into())).collect();
            json!({
                "id": details.uri.strip_prefix("secret:"), "revision": details.revision, "label": details.label,
                "owner": if details.owner == periapt_sdk::Owner::Unit { "unit" } else { "application" },
                "description": details.description, "rotation": "daily", "rotates": null,
                "expiry": details.expiry, "access": access,
            })
        })),
        "secrets.ids" => told(
            unit.secrets().map(|all| all.iter().map(|secret| secret.uri().to_owned()).collect::<Vec<_>>()),
        ),
        "secrets.grant" => {
            let relation = relation(unit, event, u32::try_from(arguments[1].as_u64().unwrap()).unwrap());
            told(match text(2) {
                None => named.grant(&relation),
                Some(unit) => named.grant_unit(&relation, unit),
            })
        }
        "secrets.revoke" => told(named.revoke(text(1).unwrap())),
        "secrets.remove" => told(match arguments[1].as_u64() {
            None => named.remove(),
            Some(revision) => named.remove_revision(u32::try_from(revision).unwrap()),
        }),
        other => panic!("no such function: {other}"),
    }
}

/// A parameter as it stands.
struct Json(Option<String>);

impl FromParam for Json {
    const EXPECTED: &'static str = "anything";

    fn from_json(json: Option<&str>) -> Option<Self> {
        Some(Self(json.map(str::to_owned)))
    }
}

/// An answer as the journal writes it.
fn told<T: serde::Serialize>(answer: Result<T>) -> Value {
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

/// One of the unit's by its number; the event's own may be broken.
fn relation(unit: &Unit, event: &Event, id: u32) -> Relation {
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

fn rotate(word: &str) -> Rotate {
    match word {
        "daily" => Rotate::Daily,
        "weekly" => Rotate::Weekly,
        other => panic!("no such policy: {other}"),
    }
}

fn panics(test: impl FnOnce(&mut Harness<Asker>) + std::panic::UnwindSafe) -> String {
    let caught = std::panic::catch_unwind(|| {
        let mut harness = Harness::<Asker>::new("a/0");
        harness.declares(CHARM);
        test(&mut harness);
    });
    *caught.unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn p07_a_test_that_sets_up_what_the_charm_does_not_declare_is_told() {
    let undeclared = |what: &str| format!("inconsistent: the charm declares no {what} \"x\"");
    assert_eq!(
        panics(|unit| {
            unit.config("x", true);
        }),
        undeclared("option")
    );
    assert_eq!(panics(|unit| drop(unit.relate("x", "b"))), undeclared("endpoint"));
    assert_eq!(
        panics(|unit| {
            unit.storage("x/0", "/srv/x".as_ref());
        }),
        undeclared("storage")
    );
    assert_eq!(panics(|unit| drop(unit.action("x", &[]))), undeclared("action"));
}

#[test]
fn p08_an_event_about_what_the_unit_has_not_is_told() {
    let relation = Harness::<Asker>::new("a/0").relate("db", "b");
    let created = RelationCreated { relation, app: "b".to_owned() };
    assert_eq!(
        panics(move |unit| drop(unit.run(Event::RelationCreated(created)))),
        "inconsistent: db-relation-created is about relation db:0, which the unit has not"
    );
    let about = periapt_sdk::SecretEvent { uri: "secret:00000000000000000001".to_owned(), label: None };
    assert_eq!(
        panics(move |unit| drop(unit.run(Event::SecretChanged(about)))),
        "inconsistent: secret-changed is about secret secret:00000000000000000001, which the unit has not"
    );
}
