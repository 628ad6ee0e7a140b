//! Bounds of a script: an untrusted text ends, and stays within its bounds.

use periapt_shell::{ScriptLimits, Stopped};
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
        // Each copy and each read is paid for, even if its result is dropped.
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

/// Returns a script that sets `$x` to at least this many bytes of repeated `part`.
fn long(part: &str, bytes: usize) -> String {
    let times = (bytes / part.len()).next_power_of_two().ilog2();
    format!("x='{part}'; {}", "x=$x$x; ".repeat(times as usize))
}

#[test]
fn every_command_pays_for_its_work_before_it_does_it() {
    let within = |world: &mut World, text: &str, work: u64| {
        world.run_within(text, ScriptLimits { work, ..ScriptLimits::default() }).code
    };
    for (command, text, enough, work) in [
        // Each search reads the whole rest of the line, in vain.
        ("grep -o", format!("{} echo $x | grep -oE 'a.*z|a' >/dev/null", long("a", 64 << 10)), 0, 64 << 20),
        // A pattern of few bytes and many states.
        ("grep", format!("{} echo $x | grep -cE '(a{{900}}){{9}}'", long("a", 64 << 10)), 0, 64 << 20),
        // None of the names is shown.
        ("ls", "ls /srv/hidden".to_owned(), 4 << 20, 256 << 10),
        ("rm", "rm -r /srv/hidden".to_owned(), 64 << 20, 256 << 10),
        ("a pattern of names", "echo /srv/hidden/*".to_owned(), 4 << 20, 256 << 10),
        ("test", "for i in $(seq 2000); do test -e /tmp; done".to_owned(), 8 << 20, 3 << 20),
        ("cd", "for i in $(seq 2000); do cd /tmp; done".to_owned(), 8 << 20, 3 << 20),
        ("cat", "cat /srv/large".to_owned(), 4 << 20, 512 << 10),
        ("wc", "wc -w /srv/large".to_owned(), 8 << 20, 3 << 20),
        ("head", "head -n 1 /srv/large".to_owned(), 8 << 20, 3 << 20),
        ("sort", "sort -u /srv/large".to_owned(), 64 << 20, 8 << 20),
        ("uniq", "uniq /srv/large".to_owned(), 4 << 20, 2 << 20),
        ("cut", format!("{} cut -c $x </dev/null", long("1,", 64 << 10) + "x=${x}1; "), 8 << 20, 1 << 20),
        ("tr", "tr -d b </srv/large".to_owned(), 16 << 20, 6 << 20),
        ("printenv", "printenv LARGE".to_owned(), 256 << 10, 96 << 10),
        ("env", "env".to_owned(), 512 << 10, 96 << 10),
        ("read", "IFS=$LARGE; read x y </srv/large".to_owned(), 0, 64 << 20),
        ("separators", "IFS=$LARGE; set -- $LARGE".to_owned(), 0, 64 << 20),
        ("printf", "printf '%1000d' $(seq 1000) >/dev/null".to_owned(), 4 << 20, 1 << 20),
    ] {
        let world = || {
            let mut world = World::new();
            world.files.insert("/srv/large".to_owned(), Some(vec![b'a'; 1_000_000]));
            world.files.insert("/srv/hidden".to_owned(), None);
            world.files.extend((0..4_000).map(|number| (format!("/srv/hidden/.{number}"), Some(Vec::new()))));
            world.environment.push(("LARGE".to_owned(), "x".repeat(64 << 10)));
            world
        };
        if enough > 0 {
            assert!(within(&mut world(), &text, enough).is_ok(), "{command} within {enough}");
        }
        let mut world = world();
        let code = within(&mut world, &text, work);
        assert!(matches!(code, Err(Stopped::Work { .. })), "{command} within {work}: {code:?}");
        assert_eq!((world.listed, world.files.len()), (0, 4_013), "{command}");
    }
}

#[test]
fn what_a_command_is_asked_for_is_looked_for_in_no_more_than_it_says() {
    for (text, code, error) in [
        (
            format!("{} tr \"$x\" a </dev/null", long("[:", 64 << 10)),
            1,
            "tr: a set of at most 256 characters",
        ),
        (format!("{} ls -$x", long("a", 64 << 10)), 0, ""),
        (format!("{} grep -$x b /srv/data/a.txt", long("n", 64 << 10)), 1, ""),
    ] {
        let said = World::new().run(&text);
        assert_eq!(said.code, Ok(code), "{said:?}");
        assert!(said.stderr.starts_with(error), "{said:?}");
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
    let limits = ScriptLimits::default();
    let nested = |times: usize| format!("{}echo deep{}", "$(echo ".repeat(times), ")".repeat(times));
    let said = World::new().run(&format!("echo {}", nested(usize::try_from(limits.depth).unwrap() - 2)));
    assert_eq!(said.stdout.trim_start_matches("echo ").trim(), "deep", "{said:?}");
    let groups = |times: usize| format!("{}echo deep{}", "{ ( ".repeat(times), " ); }".repeat(times));
    assert_eq!(World::new().run(&groups(9)).stdout, "deep\n");
    assert_eq!(World::new().run(&groups(11)).code, Ok(2));
}

proptest! {
    /// Any words make a script that ends, with the same result each time.
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
        let limits = || ScriptLimits { work: 4 << 20, ..ScriptLimits::default() };
        let (mut one, mut other) = (World::new(), World::new());
        let said = one.run_within(&text, limits());
        prop_assert_eq!(&said, &other.run_within(&text, limits()));
        prop_assert_eq!(&one.files, &other.files);
        prop_assert!(said.code != Err(Stopped::Answer));
    }
}
