//! Who reads and writes which bag.

use periapt_hook::{Bag, CallError, OwnBag};
use periapt_host_api::{
    LeaderTerm,
    commit::BagChanges,
    event::Event,
    relation::{BagKey, BagOwner},
};

use crate::world::{DB, RING, World, application, changed, db, now, pairs, ready, settings, unit};

#[test]
fn h01_the_hooks_remote_unit_is_read_by_default() {
    World::new().event(changed("b/0")).start().check(&[
        ("relation-get", "host: 10.0.0.4\nport: \"3306\"\n"),
        ("relation-get -", "host: 10.0.0.4\nport: \"3306\"\n"),
        ("relation-get port", "3306\n"),
        ("relation-get --format=json", "{\"host\":\"10.0.0.4\",\"port\":\"3306\"}\n"),
        ("relation-get --format json - b/1", "{\"host\":\"10.0.0.5\"}\n"),
    ]);
}

#[test]
fn h02_an_absent_key_is_nothing() {
    World::new().event(changed("b/0")).start().check(&[
        ("relation-get colour", ""),
        ("relation-get colour --format=json", "null\n"),
        ("relation-get colour b/1", ""),
    ]);
}

#[test]
fn h03_without_remote_unit_and_application_nobody_is_read() {
    World::new().start().check_errors(&[("relation-get -r db:1", 2, "no unit or application specified")]);
}

#[test]
fn without_remote_unit_the_remote_application_is_read() {
    let event = Event::RelationChanged { relation: db(), remote_unit: None };
    World::new().event(event).start().check(&[("relation-get", "version: \"8\"\n")]);
}

#[test]
fn h04_an_application_is_no_unit() {
    World::new().start().check_errors(&[
        ("relation-get -r 1 host b", 2, "expected unit name, got application name \"b\""),
        ("relation-get -r 1 host B!", 2, "invalid unit name \"B!\""),
        ("relation-get -r 1 --app host B!", 2, "invalid unit or application name \"B!\""),
    ]);
}

#[test]
fn with_the_app_flag_a_unit_stands_for_its_application() {
    World::new().event(changed("b/0")).start().check(&[
        ("relation-get --app", "version: \"8\"\n"),
        ("relation-get --app version b/0", "8\n"),
        ("relation-get --app - b", "version: \"8\"\n"),
    ]);
}

#[test]
fn h05_own_writes_are_visible_at_once() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check(&[
        ("relation-set a=1 b=2", ""),
        ("relation-get - a/0", "a: \"1\"\nb: \"2\"\ningress-address: 10.0.0.9\n"),
        ("relation-set a= ingress-address=", ""),
        ("relation-get - a/0", "b: \"2\"\n"),
        ("relation-get a a/0", ""),
    ]);
    let own = Bag::Unit("a/0".to_owned());
    assert_eq!(ready(hook.context.relation_get_value(now(), DB, &own, "b")), Ok(Some("2".to_owned())));
    let expected = settings(&[("a", ""), ("b", "2"), ("ingress-address", "")]);
    assert_eq!(hook.finish().effects.bags[&DB].unit, expected);
}

#[test]
fn h06_a_bag_is_the_same_throughout_the_hook() {
    let world = World::new().event(changed("b/0"));
    let mut mirror = world.inputs.view.clone();
    let mut hook = world.start();
    let before = hook.tool("relation-get host");
    let key = BagKey { relation: DB, owner: BagOwner::Unit(unit("b/0")) };
    mirror.bags.get_mut(&key).unwrap().settings.insert("host".into(), "moved".into());
    assert_eq!(hook.tool("relation-get host"), before);
    let mut next = World::new().event(changed("b/0"));
    next.inputs.view = mirror;
    next.start().check(&[("relation-get host", "moved\n")]);
}

#[test]
fn who_may_read_is_decided_for_each_unit() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check(&[
        ("relation-get -r ring:2 - a/1", "seed: \"7\"\n"),
        ("relation-get -r ring:2 --app - a", "password: p\n"),
    ]);
    hook.check_errors(&[
        ("relation-get - a/1", 1, "permission denied"),
        ("relation-get --app - a", 1, "permission denied"),
        ("relation-get --app - a/1", 1, "permission denied"),
        ("relation-get - c/0", 1, "permission denied"),
        ("relation-get --app - c", 1, "permission denied"),
        ("relation-get - b/7", 1, "unit \"b/7\": settings not found"),
    ]);
    let denied = Err(CallError::PermissionDenied("permission denied".to_owned()));
    for bag in [Bag::Unit("a/1".to_owned()), Bag::Application("a".to_owned())] {
        assert_eq!(ready(hook.context.relation_get(now(), DB, &bag)), denied);
    }
}

#[test]
fn the_leader_reads_and_writes_its_applications_bag() {
    let mut hook = World::leader().event(changed("b/0")).start();
    hook.check(&[
        ("relation-get --app - a", "database: wp\n"),
        ("relation-set --app database= user=u", ""),
        ("relation-get --app - a/0", "user: u\n"),
    ]);
    let gathered = hook.finish();
    let expected =
        BagChanges { unit: settings(&[]), application: settings(&[("database", ""), ("user", "u")]) };
    assert_eq!((&gathered.effects.bags[&DB], gathered.leader_term), (&expected, Some(LeaderTerm(3))));
}

#[test]
fn others_do_not_write_their_applications_bag() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check_errors(&[
        ("relation-set --app a=1", 1, "cannot write relation settings"),
        ("relation-set -r ring:2 --app a=1", 1, "cannot write relation settings"),
    ]);
    let refused = ready(hook.context.relation_set(now(), RING, OwnBag::Application, &pairs(&[("a", "1")])));
    assert_eq!(refused, Err(CallError::NotLeader("cannot write relation settings".to_owned())));
    let gathered = hook.finish();
    assert!(gathered.effects.is_empty());
    assert_eq!(gathered.leader_term, None);
}

#[test]
fn a_leader_whose_bag_is_not_in_view_yet_is_not_told_that_it_is_empty() {
    let mut world = World::new();
    world.inputs.lease = World::leader().inputs.lease;
    let key = BagKey { relation: DB, owner: BagOwner::Application(application("a")) };
    world.inputs.view.bags.remove(&key);
    let mut hook = world.start();
    let answer = ready(hook.context.relation_get(now(), DB, &Bag::Application("a".to_owned())));
    assert!(matches!(answer, Err(CallError::TryAgain(_))), "{answer:?}");
    let mut world = World::leader();
    world.inputs.view.bags.remove(&key);
    world.event(changed("b/0")).start().check(&[("relation-get --app - a", "{}\n")]);
}

#[test]
fn h10_arguments_must_be_keys_and_values() {
    World::new().event(changed("b/0")).start().check_errors(&[
        ("relation-set haha", 2, "expected \"key=value\", got \"haha\""),
        ("relation-set a=1 a=2", 2, "key \"a\" specified more than once"),
        ("relation-set =1", 2, "expected \"key=value\", got \"=1\""),
    ]);
}

#[test]
fn h11_arguments_override_the_file() {
    let mut hook = World::new().event(changed("b/0")).start();
    let output = hook.tool_with("relation-set --file - a=9", Some("a: 1\nb: 2\nc: true\nd: null\ne: 0x10\n"));
    assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""));
    let expected = settings(&[("a", "9"), ("b", "2"), ("c", "true"), ("d", ""), ("e", "0x10")]);
    assert_eq!(hook.finish().effects.bags[&DB].unit, expected);
}

#[test]
fn the_file_is_read_from_standard_input_only() {
    let mut hook = World::new().event(changed("b/0")).start();
    let json = hook.tool_with("relation-set -r db:1 --file -", Some(r#"{"key": "multi\nline \"text\""}"#));
    assert_eq!((json.exit_code, json.stderr.as_str()), (0, ""));
    hook.check_errors(&[
        ("relation-set --file -", 1, "hook tool requires stdin, none supplied"),
        (
            "relation-set --file /etc/passwd",
            1,
            "cannot read \"/etc/passwd\": in the sandbox a hook tool reads its standard input only (--file -)",
        ),
    ]);
    for wrong in ["[a]", "a: [1]", "a: {b: c}", "a: 1\na: 2", "\"", "just text"] {
        let output = hook.tool_with("relation-set --file -", Some(wrong));
        assert_eq!(output.exit_code, 1, "{wrong}");
        assert!(output.stderr.starts_with("ERROR cannot read settings: "), "{wrong}: {}", output.stderr);
    }
    assert_eq!(hook.tool_with("relation-set --file -", Some("")).exit_code, 0);
    assert_eq!(hook.finish().effects.bags[&DB].unit, settings(&[("key", "multi\nline \"text\"")]));
}

#[test]
fn no_argument_is_no_change() {
    let mut hook = World::leader().event(changed("b/0")).start();
    hook.check(&[("relation-set", ""), ("relation-set --app", ""), ("relation-set ''", "")]);
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn the_format_flag_of_relation_set_is_deprecated() {
    let mut hook = World::new().event(changed("b/0")).start();
    let output = hook.tool("relation-set --format json a=1");
    assert_eq!(output.stderr, "--format flag deprecated for command \"relation-set\"\n");
    assert_eq!(output.exit_code, 0);
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
    assert!(limit(set("big", "x".repeat(65_537))).contains("at most 65536"));
    assert!(limit(set(&"k".repeat(257), String::new())).contains("at most 256"));
    // As JSON each takes six times its length.
    for key in ["key0", "key1"] {
        assert_eq!(set(key, "\u{1}".repeat(65_000)), Ok(()));
    }
    assert!(limit(set("key2", "\u{1}".repeat(65_000))).contains("at most 1048576 fit into one commit"));
    assert_eq!(set("key0", "y".repeat(65_000)), Ok(()), "overwriting takes nothing more");
    for key in ["key2", "key3"] {
        assert_eq!(set(key, "x".repeat(65_000)), Ok(()));
    }
    // With the address that was there before, and which nobody else can take away.
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
