//! A script is a stranger's text: it ends, and takes no more than it may.

use periapt_shell::{Limits, Stopped};
use proptest::prelude::*;

use crate::world::World;

fn stopped(text: &str) -> (Stopped, World) {
    let mut world = World::new();
    match world.run(text).code {
        Err(stopped) => (stopped, world),
        Ok(code) => panic!("{text}: exit {code}"),
    }
}

#[test]
fn what_never_ends_is_stopped_and_lets_others_run_until_then() {
    for text in [
        "while true; do :; done",
        "until false; do x=1; done",
        "while :; do sh -c :; done",
        "while true; do echo -n; done > /tmp/x",
        "seq 1 9223372036854775807",
        "set -- 1; while :; do for x in \"$@\"; do :; done; done",
        "while :; do continue; done",
        "while :; do x=$(true); done",
        "while :; do true | true; done",
    ] {
        let (stopped, world) = stopped(text);
        assert!(matches!(stopped, Stopped::Work { .. }), "{text}: {stopped}");
        assert!(world.pauses > 2 || text.starts_with("seq"), "{text}: {} pauses", world.pauses);
    }
}

#[test]
fn what_grows_without_end_is_stopped() {
    for text in [
        "x=aaaaaaaa; while :; do x=$x$x; done",
        "x=aaaaaaaa; while :; do x=$(echo $x; echo $x); done",
        "x=aaaaaaaa; while :; do x=\"$x $x\"; set -- $x; done",
        "set -- a; while :; do set -- \"$@\" \"$@\"; done",
        "i=0; while :; do i=$((i + 1)); export v$i=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
        "echo aaaaaaaa > /tmp/x; while :; do cat /tmp/x /tmp/x > /tmp/y; cat /tmp/y > /tmp/x; done",
        "while :; do printf '%4096s' x; done",
        // Each copy and each read is paid for, whatever becomes of it.
        "x=$(printf '%4096s' x); while :; do x=$x$x; sh -c :; env :; ( : ); done",
        "while :; do cat /srv/huge 2>/dev/null; done",
        "while :; do echo a | grep -E '(a{900}){9}' 2>/dev/null; done",
        "while :; do relation-ids db >/dev/null; done",
        "x=$(printf '%4096s' x); x=$x$x$x$x; y=${x%%*a*b*c*d*e}; while :; do y=${x%%*a*b*c*d*e}; done",
    ] {
        stopped(text);
    }
    let mut world = World::new();
    world.run("while :; do relation-ids db; done");
    assert!(world.called.len() < 20_000, "{}", world.called.len());
    let said = World::new().run("x=$(seq 1 2000000)");
    assert!(said.code.is_err(), "{:?}", said.code);
}

#[test]
fn arguments_that_patterns_and_columns_make_are_paid_for_before_they_are_made() {
    let files =
        "for a in 1 2 3 4 5 6 7 8 9; do for b in 1 2 3 4 5 6 7 8 9; do touch /tmp/$a$b; done; done; cd /tmp";
    let twice = |name: &str, times: usize| format!("{name}=\"${name} ${name}\"; ").repeat(times);
    for text in [
        format!("{files}; p='*'; {} set -- $p; echo $#", twice("p", 14)),
        format!("f=%4096s; {} printf \"$f\" x >/dev/null", twice("f", 17)),
        format!("x=a; {} set -- $x", twice("x", 18)),
    ] {
        let (stopped, world) = stopped(&text);
        assert!(matches!(stopped, Stopped::Work { .. } | Stopped::Arguments { .. }), "{text}: {stopped}");
        drop(world);
    }
}

#[test]
fn an_honest_cut_of_a_long_text_is_made() {
    let said = World::new().run("x=$(seq 1 2000); echo ${x%99*} | tail -c 5; echo ${x##*none} | wc -c");
    assert_eq!(said.code, Ok(0), "{said:?}");
}

#[test]
fn a_script_that_is_stopped_is_told_which_bound_it_passed() {
    let (stopped, _) = stopped("while true; do :; done");
    assert!(
        stopped.to_string().contains("used up its work (64 MiB of text looked at or copied)"),
        "{stopped}"
    );
}

#[test]
fn commands_that_run_each_other_have_an_end() {
    for (text, error) in [
        ("env ".repeat(10_000) + "true", "commands run each other"),
        ("command ".repeat(10_000) + "true", "commands run each other"),
        ("echo 'sh /tmp/s' > /tmp/s; sh /tmp/s".to_owned(), "more than"),
        ("x='sh -c \"$x\"'; export x; sh -c \"$x\"".to_owned(), "more than"),
    ] {
        let said = World::new().run(&text);
        assert!(said.code.clone().is_ok_and(|code| code != 0) && said.stderr.contains(error), "{said:?}");
    }
}

#[test]
fn a_script_may_be_nested_as_deep_as_it_says_and_no_deeper() {
    let limits = Limits::default();
    let nested = |times: usize| format!("{}echo deep{}", "$(echo ".repeat(times), ")".repeat(times));
    let said = World::new().run(&format!("echo {}", nested(usize::try_from(limits.depth).unwrap() - 2)));
    assert_eq!(said.stdout.trim_start_matches("echo ").trim(), "deep", "{said:?}");
    let groups = |times: usize| format!("{}echo deep{}", "{ ( ".repeat(times), " ); }".repeat(times));
    assert_eq!(World::new().run(&groups(9)).stdout, "deep\n");
    assert_eq!(World::new().run(&groups(11)).code, Ok(2));
}

proptest! {
    /// Whatever the words, a script ends, and the same script does the same.
    #[test]
    fn any_script_ends_and_does_the_same_again(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "echo", "a", "$x", "\"$@\"", "x=$x$x", "|", "&&", "||", ";", ";", ";", "\n", "(", ")", "{", "}",
                "if", "then", "else", "fi", "while", "until", "do", "done", "for x in 1 2", "true", "false",
                "$(echo a)", "`echo b`", "$((x + 1))", "> /tmp/x", "< /tmp/x", "2>&1", "cat", "read x", "sh -c",
                "'echo $x'", "test", "-f", "/tmp/*", "break", "continue", "exit", "set -e", "!", "relation-ids",
                "grep", "sort", "tr a b", "head -n 1", "${x:-y}", "${x%a*}", "env", "rm -rf /tmp/x", "mkdir -p /tmp/d",
            ]),
            0..40,
        )
    ) {
        let text = words.join(" ");
        let limits = || Limits { work: 4 << 20, ..Limits::default() };
        let (mut one, mut other) = (World::new(), World::new());
        let said = one.run_within(&text, limits());
        prop_assert_eq!(&said, &other.run_within(&text, limits()));
        prop_assert_eq!(&one.files, &other.files);
        prop_assert!(said.code != Err(Stopped::Answer));
    }
}
