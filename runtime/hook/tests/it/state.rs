//! What the charm stores for its unit (`hook-model.md` 5.11).

use periapt_hook::CallError;
use periapt_host_api::{state::StateKey, view::StateView};

use crate::world::{World, pairs, settings, unit};

/// `a/0` stored `seen` and an empty `done`; what `a/1` of the same runner stored is none of its business.
fn world() -> World {
    let mut world = World::new();
    for (owner, key, value) in [("a/0", "seen", "1"), ("a/0", "done", ""), ("a/1", "seen", "of a/1")] {
        let key = StateKey { unit: unit(owner), key: key.into() };
        world.inputs.view.states.insert(key.clone(), StateView { key, value: value.into() });
    }
    world
}

#[test]
fn own_writes_are_read_back_in_the_same_hook() {
    let mut hook = world().start();
    hook.check(&[
        ("state-get", "done: \"\"\nseen: \"1\"\n"),
        ("state-get -", "done: \"\"\nseen: \"1\"\n"),
        ("state-get seen", "1\n"),
        ("state-get seen --format json", "\"1\"\n"),
        ("state-get done", ""),
        ("state-get done --strict", ""),
        ("state-get absent", ""),
        ("state-get absent --format json", "\"\"\n"),
        ("state-set seen=2 new=x= empty=", ""),
        ("state-set", ""),
        ("state-get seen", "2\n"),
        ("state-get new", "x=\n"),
        ("state-delete done", ""),
        ("state-delete new", ""),
        ("state-delete absent", ""),
        ("state-get new", ""),
        ("state-get --format json", "{\"empty\":\"\",\"seen\":\"2\"}\n"),
    ]);
    let state = hook.finish().effects.state;
    let expected = [("done", None), ("empty", Some("")), ("new", None), ("seen", Some("2"))];
    assert!(state.iter().map(|(key, value)| (key.as_str(), value.as_deref())).eq(expected), "{state:?}");
}

#[test]
fn both_doors_lead_to_the_same() {
    let mut hook = world().start();
    assert_eq!(hook.context.state_get("seen").as_deref(), Some("1"));
    assert_eq!(hook.context.state_get("absent"), None);
    hook.context.state_set(&pairs(&[("typed", "t"), ("seen", "3")])).unwrap();
    hook.check(&[("state-get typed", "t\n"), ("state-set argv=a", ""), ("state-delete done", "")]);
    assert_eq!(hook.context.state_get_all(), settings(&[("argv", "a"), ("seen", "3"), ("typed", "t")]));
    hook.context.state_delete("typed").unwrap();
    hook.check_errors(&[("state-get typed --strict", 1, "\"typed\" not found")]);
    let empty = CallError::InvalidArgument("a key must not be empty".to_owned());
    assert_eq!(hook.context.state_set(&pairs(&[("", "x"), ("kept", "no")])), Err(empty));
    assert_eq!(hook.context.state_get("kept"), None, "all or nothing");
}

#[test]
fn a_file_is_read_and_arguments_override_it() {
    let mut hook = world().start();
    let output = hook.tool_with("state-set --file - a=9", Some("a: 1\nb: 2\nc:\n"));
    assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""));
    hook.check(&[("state-get", "a: \"9\"\nb: \"2\"\nc: \"\"\ndone: \"\"\nseen: \"1\"\n")]);
}

#[test]
fn each_mistake_has_its_own_message() {
    let mut hook = world().start();
    hook.check_errors(&[
        ("state-set haha", 2, "expected \"key=value\", got \"haha\""),
        ("state-set a=1 a=2", 2, "key \"a\" specified more than once"),
        (
            "state-set --file x",
            1,
            "cannot read \"x\": in the sandbox a hook tool reads its standard input only (--file -)",
        ),
        ("state-set --file -", 1, "hook tool requires stdin, none supplied"),
        ("state-delete", 2, "no key specified"),
        ("state-delete a b", 2, "unrecognized args: [\"b\"]"),
        ("state-get a b", 2, "unrecognized args: [\"b\"]"),
        ("state-get absent --strict", 1, "\"absent\" not found"),
    ]);
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn what_one_commit_takes_bounds_what_one_hook_stores() {
    let mut hook = world().limits(|limits| limits.effect_keys = 2).start();
    hook.check(&[("state-set a=1 b=2", ""), ("state-set a=3", "")]);
    let error = "the hook would change 3 bags, lists and keys of state; at most 2 fit into one commit";
    hook.check_errors(&[("state-set c=1", 1, error)]);
    let mut hook = world().limits(|limits| limits.effect_bytes = 100).start();
    let value = "x".repeat(100);
    assert!(matches!(hook.context.state_set(&pairs(&[("a", &value)])), Err(CallError::LimitExceeded(_))));
    assert!(hook.finish().effects.is_empty());
}
