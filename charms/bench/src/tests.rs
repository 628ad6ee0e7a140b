//! The measured hooks do their work, and fail if they cannot.

use super::{Bench, KEYS};
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Outcome};

#[test]
fn a_changed_hook_reads_what_the_other_tells_and_counts() {
    let mut unit = Harness::<Bench>::new("bench/0");
    let peers = unit.relate("peer", "bench");
    let told = KEYS.map(|key| (key, "told"));
    unit.join(&peers, "bench/1", &told).unwrap();
    unit.change(&peers, "bench/1", &[("role", "replica")]).unwrap();
    assert_eq!(unit.unit_bag(&peers)["count"], "2", "joined is followed by changed");
}

#[test]
fn a_key_that_is_missing_fails_the_hook() {
    let mut unit = Harness::<Bench>::new("bench/0");
    let peers = unit.relate("peer", "bench");
    let failure = unit.join(&peers, "bench/1", &[("address", "10.0.0.1")]).unwrap_err();
    assert_eq!(failure.message, "bag of bench/1 in peer:0 has no database");
}

#[test]
fn update_status_is_handled() {
    assert_eq!(Harness::<Bench>::new("bench/0").run(Event::UpdateStatus), Ok(Outcome::Handled));
}
