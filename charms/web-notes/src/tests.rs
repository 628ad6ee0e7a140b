//! Tests of the charm beside which no workload runs. `tests/tests/cli/web_notes.rs` has it with its server.

use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Status};

use super::{LONGEST, WebNotes};

#[test]
fn a_unit_whose_server_has_not_started_waits_and_says_why() {
    let mut unit = Harness::<WebNotes>::new("web-notes/0");
    unit.run(Event::UpdateStatus).unwrap();
    let status: Status = unit.status().unwrap();
    assert!(status.message.starts_with("listing the notes: "), "{status:?}");
}

#[test]
fn a_note_that_is_too_long_is_refused_before_it_is_sent() {
    let mut unit = Harness::<WebNotes>::new("web-notes/0");
    let text = format!("{:?}", "x".repeat(LONGEST + 1));
    let error = unit.action("add", &[("text", &text)]).unwrap_err();
    assert!(error.to_string().contains("4097 bytes"), "{error}");
}
