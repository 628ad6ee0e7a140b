//! The plain world of the table, in a harness.

use std::cell::RefCell;

use periapt_sdk::{
    ActionEvent, Charm, Event, GoalRelation, GoalState, GoalStatus, Outcome, Relation, RelationBroken,
    RelationChanged, RelationCreated, RelationDeparted, RelationJoined, Result, Unit, testing::Harness,
};
use serde_json::{Value, json};

use crate::{Table, call::call};

/// The metadata of the plain world's charm.
pub(crate) const CHARM: &str = "
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
    /// The call that the charm makes, and its answer.
    static ASKED: RefCell<Option<(String, Value)>> = const { RefCell::new(None) };
    static TOLD: RefCell<Option<Value>> = const { RefCell::new(None) };
}

/// The plain world of the table, in a harness.
pub(crate) struct Scene {
    harness: Harness<Asker>,
    db: Relation,
    /// Ids of the harness's secrets, and of the table's.
    ids: Vec<(String, String)>,
}

impl Scene {
    pub(crate) fn new(table: &Table, given: &[Vec<String>]) -> Self {
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
        let mut scene = Self { harness, db, ids: Vec::new() };
        scene.does("relations.set", json!([1, "unit", [["ingress-address", "10.0.0.9"]]]));
        scene.does("relations.set", json!([1, "application", [["database", "wp"]]]));
        scene.does("state.set", json!([[["seen", "1"], ["done", ""]]]));
        scene.does("status.set", json!(["active", "a/0"]));
        scene.secrets(table);
        let mut members = given.iter().filter(|words| words.first().is_some_and(|word| word == "members"));
        if let Some(members) = members.next_back() {
            scene.members(members.get(2..).unwrap_or_default());
        }
        scene.harness.leader(given.iter().any(|words| *words == ["leader"]));
        scene
    }

    /// Makes a call in a hook of its own.
    fn does(&mut self, function: &str, arguments: Value) -> Value {
        ASKED.set(Some((function.to_owned(), arguments)));
        self.harness.run(Event::UpdateStatus).unwrap();
        ASKED.set(None);
        TOLD.take().unwrap()
    }

    fn secrets(&mut self, table: &Table) {
        let said = |label: &str| json!({"label": label, "description": "what it is", "rotate": "daily"});
        let mut uris = Vec::new();
        for (name, owner, label, value) in
            [("own", "unit", "own", "mine-1"), ("app", "application", "ours", "ours-1")]
        {
            let made = self.does("secrets.add", json!([owner, [["password", value]], said(label)]));
            let uri = made["Ok"].as_str().unwrap().to_owned();
            self.does("secrets.grant", json!([uri, 1, "b/0"]));
            uris.push((uri, table.secrets[name].clone()));
        }
        let theirs = self.harness.grant_secret(&[("password", "theirs-1")]);
        self.does("secrets.get", json!([theirs.uri(), "theirs", "tracked"]));
        self.harness.revise_secret(&theirs, &[("password", "theirs-2")]);
        let revoked = self.harness.grant_secret(&[("password", "x")]);
        self.harness.revoke_secret(&revoked);
        uris.push((theirs.uri().to_owned(), table.secrets["theirs"].clone()));
        uris.push((revoked.uri().to_owned(), table.secrets["revoked"].clone()));
        // The next id that the harness draws.
        uris.push((format!("secret:{:020}", uris.len() + 1), table.drawn.clone()));
        self.ids = uris.into_iter().map(|(uri, id)| (uri.replace("secret:", ""), id)).collect();
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

    /// Makes a call in the case's hook.
    pub(crate) fn ask(mut self, hook: &[String], function: &str, arguments: &Value) -> Value {
        let event = self.event(hook);
        let arguments = self.replaced(arguments, |(harness, table)| (table, harness));
        ASKED.set(Some((function.to_owned(), arguments)));
        let outcome = self.harness.run(event);
        assert_eq!(outcome, Ok(Outcome::Handled), "{function}");
        ASKED.set(None);
        self.replaced(&TOLD.take().unwrap(), |(harness, table)| (harness, table))
    }

    /// Sets up the event's relation, and returns the event.
    fn event(&mut self, hook: &[String]) -> Event {
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
            // Events of secrets and storage do not change any answer.
            _ => Event::UpdateStatus,
        }
    }

    /// Replaces the ids of one side by those of the other in a value.
    fn replaced<'a>(
        &'a self,
        value: &Value,
        pair: impl Fn(&'a (String, String)) -> (&'a String, &'a String),
    ) -> Value {
        let mut text = value.to_string();
        for names in &self.ids {
            let (from, to) = pair(names);
            text = text.replace(from, to);
        }
        serde_json::from_str(&text).unwrap()
    }
}

/// A charm that makes the call that the test sets.
#[derive(Default)]
pub(crate) struct Asker;

impl Charm for Asker {
    fn otherwise(&mut self, unit: &Unit, event: &Event) -> Result {
        if let Some((function, arguments)) = ASKED.with_borrow(Clone::clone) {
            let told = call(unit, event, &function, &arguments);
            TOLD.set(Some(told));
        }
        Ok(())
    }
}
