//! The names that a test may set up: those that the charm declares, and events about relations, storage and secrets
//! of the unit.

use periapt_sdk::{Event, RelationCreated, testing::Harness};

use crate::scene::{Asker, CHARM};

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
    let undeclared = |what: &str| format!("inconsistent: the charm has no {what} \"x\"");
    assert_eq!(
        panics(|unit| {
            unit.config("x", true);
        }),
        "inconsistent: config: unknown option \"x\"; known are ratio, size, title"
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
