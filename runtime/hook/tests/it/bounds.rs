//! Bounds of one hook.

use periapt_hook::{CallError, OwnBag, Ports};

use crate::world::{DB, World, changed, now, pairs, ready};

#[test]
fn a_call_is_bounded_and_an_error_quotes_no_mebibyte() {
    let mut hook = World::new().event(changed("b/0")).start();
    let long = "x".repeat(1 << 19);
    let output = hook.tool(&format!("open-port {long}"));
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.len() < 5_000);
    let error = "the call's arguments are 1048588 bytes long; at most 1048576 are allowed";
    hook.check_errors(&[(&format!("relation-set {long} b={long}yyyyyyyyyy"), 1, error)]);
    let stdin = format!("a: {}\n", "x".repeat(1 << 20));
    let output = hook.tool_with("relation-set --file -", Some(&stdin));
    assert_eq!(output.exit_code, 1);
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn values_and_commits_are_bounded_at_the_call() {
    let mut hook = World::new().event(changed("b/0")).start();
    let mut set = |key: &str, value: String| {
        ready(hook.context.relation_set(now(), DB, OwnBag::Unit, &[(key.to_owned(), value)]))
    };
    let limit = |result: Result<(), CallError>| match result {
        Err(CallError::LimitExceeded(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(limit(set("big", "x".repeat(262_145))).contains("at most 262144"));
    assert!(limit(set(&"k".repeat(257), String::new())).contains("at most 256"));
    // JSON escapes each character to six bytes.
    for key in ["key0", "key1"] {
        assert_eq!(set(key, "\u{1}".repeat(65_000)), Ok(()));
    }
    assert!(limit(set("key2", "\u{1}".repeat(65_000))).contains("at most 1048576 fit into one commit"));
    assert_eq!(set("key0", "y".repeat(65_000)), Ok(()), "overwriting takes nothing more");
    for key in ["key2", "key3"] {
        assert_eq!(set(key, "x".repeat(65_000)), Ok(()));
    }
    // The bag also holds the unit's address from before the hook.
    let whole = limit(set("key4", "x".repeat(5_000)));
    assert!(whole.starts_with("the settings would take 265043 bytes; at most 262144"), "{whole}");
    let bag = &hook.finish().effects.bags[&DB].unit;
    assert_eq!(bag.len(), 4);
}

#[test]
fn the_bags_of_one_commit_are_bounded_in_number() {
    let mut hook = World::leader().limits(|limits| limits.effect_keys = 2).event(changed("b/0")).start();
    hook.check(&[("relation-set a=1", ""), ("relation-set --app a=1", ""), ("relation-set b=1", "")]);
    let error = "the hook would change 3 bags, lists and keys of state; at most 2 fit into one commit";
    hook.check_errors(&[
        ("leader-set a=1", 1, error),
        ("relation-set -r ring:2 a=1", 1, error),
        ("open-port 80", 1, error),
    ]);
}

#[test]
fn what_one_commit_takes_bounds_what_one_hook_stores() {
    let mut hook = World::new().limits(|limits| limits.effect_bytes = 100).start();
    let value = "x".repeat(100);
    assert!(matches!(hook.context.state_set(&pairs(&[("a", &value)])), Err(CallError::LimitExceeded(_))));
    let empty = CallError::InvalidArgument("a key must not be empty".to_owned());
    assert_eq!(hook.context.state_set(&pairs(&[("", "x"), ("kept", "no")])), Err(empty));
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn opening_and_closing_without_end_ends() {
    let mut hook = World::new().limits(|limits| limits.effect_bytes = 1_000).start();
    let flood = (0..100).find_map(|_| {
        let opened = hook.context.open_ports(Ports::Tcp(1, 1), &[]);
        opened.and(hook.context.close_ports(Ports::Tcp(1, 1), &[])).err()
    });
    assert!(matches!(flood, Some(CallError::LimitExceeded(_))), "{flood:?}");
}
