//! Hook tools as commands.

use crate::world::{World, fail, say};

#[test]
fn hook_tools_are_commands_like_others() {
    say(&[
        ("for id in $(relation-ids db); do echo \"<$id>\"; done", "<db:1>\n<db:2>\n"),
        ("relation-ids db | wc -l", "2\n"),
        ("is-leader 2>/dev/null || echo follower", "follower\n"),
        // A tool reads a pipe's content, and nothing else of the script's.
        ("echo a | leader-get; leader-get", "a\n"),
        ("relation-ids db | while read id; do relation-get -r $id; echo $id; done", "db:1\ndb:2\n"),
    ]);
    let mut world = World::new();
    world.run("relation-set -r db:1 \"key=a value\" 'other=$x'; status-set active");
    let expected: [&[&str]; 2] =
        [&["relation-set", "-r", "db:1", "key=a value", "other=$x"], &["status-set", "active"]];
    assert_eq!(world.called, expected);
    fail(&[("is-leader", 1, "ERROR no\n")]);
}

#[test]
fn tools_that_speak_of_secrets_content_are_refused_however_they_are_named() {
    let error = |tool: &str| {
        format!("ERROR {tool} is not run from outside: secret content would be stored with the task\n")
    };
    for (text, tool) in [
        ("secret-get x", "secret-get"),
        ("a=secret-; b=get; $a$b x", "secret-get"),
        ("sec\"ret\"-add x=y", "secret-add"),
        ("command secret-set x y=z", "secret-set"),
        ("env secret-get x", "secret-get"),
        ("printf 'secret-get x' | sh", "secret-get"),
    ] {
        let mut world = World::new();
        let said = world.run(text);
        assert_eq!((said.code, said.stderr), (Ok(1), error(tool)), "{text}");
        assert!(world.called.is_empty(), "{text}");
    }
}
