//! Tests of the charm beside which no workload runs. `tests/tests/cli/web_page.rs` has it with its server.

use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Status};

use super::{WebPage, layer};

#[test]
fn a_unit_whose_server_has_not_started_waits_and_says_why() {
    let mut unit = Harness::<WebPage>::new("web-page/0");
    unit.config("title", "Hello").config("text", "a text");
    unit.run(Event::ConfigChanged).unwrap();
    let reason = "container \"web\": nobody listens: no workloads run beside a unit in memory";
    assert_eq!(unit.status(), Some(Status::waiting(reason)));
    unit.run(Event::UpdateStatus).unwrap();
    let status = unit.status().unwrap();
    assert!(status.message.starts_with("fetching the page: "), "{status:?}");
}

#[test]
fn whatever_a_title_contains_stays_in_its_place() {
    let title = "a\"}, \"b\": {\n'c': #";
    let layer: serde_json::Value = serde_json::from_str(&layer(title)).unwrap();
    assert_eq!(layer["services"]["web"]["environment"]["TITLE"], title);
    assert_eq!(layer["services"]["web"].as_object().unwrap().len(), 2);
}
