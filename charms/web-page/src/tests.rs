//! Tests of the charm beside a container in memory. `tests/tests/cli/web_page.rs` has it with its server.

use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, HttpResponse, Status, WorkloadEvent};

use serde_json::json;

use super::{WebPage, layer};

#[test]
fn a_unit_whose_server_has_not_started_waits_and_says_why() {
    let mut unit = Harness::<WebPage>::new("web-page/0");
    unit.config("title", "Hello").config("text", "a text");
    unit.run(Event::ConfigChanged).unwrap();
    let reason = "container \"web\": nobody listens: the test has not started web beside the unit in memory";
    assert_eq!(unit.status(), Some(Status::waiting(reason)));
    unit.run(Event::UpdateStatus).unwrap();
    let status = unit.status().unwrap();
    assert!(status.message.starts_with("fetching the page: "), "{status:?}");
}

#[test]
fn a_server_that_starts_gets_its_configuration() {
    let mut unit = Harness::<WebPage>::new("web-page/0");
    unit.config("title", "Hello").config("text", "a text");
    let web = unit.container("web");
    unit.serve(8080, |_| Some(HttpResponse { status: 200, body: "Hello\na text".into() }));
    unit.run(Event::PebbleReady(WorkloadEvent { workload: "web".to_owned() })).unwrap();
    assert_eq!(web.file("/page.txt").as_deref(), Some("a text"));
    assert!(web.layer("charm").unwrap().contains(r#""TITLE":"Hello""#));
    assert_eq!(web.actions(), ["replan"]);
    assert_eq!(unit.status(), Some(Status::active("Hello")));
}

#[test]
fn a_unit_tells_where_its_numbers_are_before_its_server_has_started() {
    let mut unit = Harness::<WebPage>::new("web-page/0");
    unit.config("title", "Hello").config("text", "a text");
    let metrics = unit.relate("metrics", "prometheus");
    unit.join(&metrics, "prometheus/0", &[]).unwrap();
    assert_eq!(unit.unit_bag(&metrics).get("port").map(String::as_str), Some("8080"));
    unit.end(&metrics).unwrap();
}

#[test]
fn a_server_that_cannot_be_started_blocks_the_unit() {
    let mut unit = Harness::<WebPage>::new("web-page/0");
    unit.config("title", "Hello").config("text", "a text");
    unit.container("web").answers(|request| {
        let ended = r#"{"result":{"status":"Error","err":"port 8080 is taken"}}"#;
        request.path.contains("/wait").then(|| HttpResponse { status: 200, body: ended.into() })
    });
    unit.run(Event::ConfigChanged).unwrap();
    assert_eq!(unit.status(), Some(Status::blocked("container \"web\": port 8080 is taken")));
}

#[test]
fn units_with_notes_are_named_as_in_kubernetes() {
    let notes = json!({ "services": { "web": {
        "override": "merge", "environment": { "TITLE": "t", "NOTES": "web-notes-0:8080" }
    } } });
    let layer: serde_json::Value = serde_json::from_str(&layer("t", "web-notes-0:8080")).unwrap();
    assert_eq!(layer["services"], notes["services"]);
}

#[test]
fn whatever_a_title_contains_stays_in_its_place() {
    let title = "a\"}, \"b\": {\n'c': #";
    let layer: serde_json::Value = serde_json::from_str(&layer(title, "")).unwrap();
    assert_eq!(layer["services"]["web"]["environment"]["TITLE"], title);
    assert_eq!(layer["services"]["web"].as_object().unwrap().len(), 2);
}
