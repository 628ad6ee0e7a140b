//! Tests of the charm against an in-memory unit.

use super::Greeter;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Status};

fn configured(greeting: &str) -> Harness<Greeter> {
    let mut unit = Harness::new("{name}/0");
    unit.config("greeting", greeting).run(Event::ConfigChanged).unwrap();
    unit
}

#[test]
fn it_says_what_it_is_told_to() {
    assert_eq!(configured("Ahoy").status(), Some(Status::active("says Ahoy")));
}

#[test]
fn without_a_greeting_it_is_blocked() {
    assert_eq!(configured("").status(), Some(Status::blocked("option greeting is empty")));
}

#[test]
fn the_action_greets_the_name_that_it_is_given() {
    let mut unit = configured("Ahoy");
    unit.action("greet", &[("whom", "\"you\"")]).unwrap();
    assert_eq!(unit.action_results()["greeting"], "Ahoy, you!");
}
