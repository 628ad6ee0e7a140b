//! What the commands say and exit with.

use std::time::Duration;

use crate::world::{World, fail, say};

#[test]
fn what_is_printed_is_as_bash_prints_it() {
    say(&[
        ("echo", "\n"),
        ("echo -n a", "a"),
        ("echo -e 'a\\tb'; echo 'a\\tb'", "a\tb\na\\tb\n"),
        ("echo -x -n", "-x -n\n"),
        ("printf '%s-%d\\n' a 1 b 2", "a-1\nb-2\n"),
        ("printf 'plain'", "plain"),
        ("seq 3; seq 2 3; seq 5 -2 1", "1\n2\n3\n2\n3\n5\n3\n1\n"),
        ("hostname; hostname -s", "probe-0\nprobe-0\n"),
        ("pwd; cd /srv/data && pwd; cd ../..; pwd; cd; pwd", "/charm\n/srv/data\n/\n/charm\n"),
        ("env A=b printenv A; env | grep JUJU_UNIT", "b\nJUJU_UNIT_NAME=probe/0\n"),
        ("command -v echo relation-get curl; echo $?", "echo\nrelation-get\n1\n"),
        ("/bin/echo a; /usr/bin/env echo b; bash -c 'echo c'; /bin/sh -c 'echo d'", "a\nb\nc\nd\n"),
        (
            "bash -lc 'echo a'; sh -eux -c 'echo b' 2>/dev/null; bash -o pipefail -c 'false | true'; echo $?",
            "a\nb\n1\n",
        ),
        ("echo 'echo from $1' > /tmp/s; sh /tmp/s file; echo 'echo piped' | sh", "from file\npiped\n"),
    ]);
}

#[test]
fn lines_are_cut_sorted_and_counted() {
    let ten = "seq 1 12";
    for (command, expected) in [
        ("head -n 2", "1\n2\n"),
        ("head -2", "1\n2\n"),
        ("head -n -10", "1\n2\n"),
        ("tail -n 2", "11\n12\n"),
        ("tail -n +11", "11\n12\n"),
        ("head -c 3", "1\n2"),
        ("wc -l", "12\n"),
        ("wc", "     12      12      27\n"),
        ("sort | tail -1", "9\n"),
        ("sort -rn | head -1", "12\n"),
        ("grep -c 1", "4\n"),
        ("grep -v 1 | wc -l", "8\n"),
        ("tr '\\n' , | cut -d, -f 2-3,5", "2,3,5\n"),
        ("tr -d '\\n'", "123456789101112"),
    ] {
        assert_eq!(World::new().run(&format!("{ten} | {command}")).stdout, expected, "{command}");
    }
    say(&[
        ("printf 'b\\na\\nb\\n' | sort -u", "a\nb\n"),
        ("printf 'b\\nb\\na\\n' | uniq -c", "      2 b\n      1 a\n"),
        ("echo Hello | tr a-z A-Z; echo aab | tr -s a; echo x1 | tr '[:digit:]' n", "HELLO\nab\nxn\n"),
        ("echo abc | cut -c 2-", "bc\n"),
        ("wc -l /srv/data/a.txt /srv/data/b.txt", "3 /srv/data/a.txt\n1 /srv/data/b.txt\n4 total\n"),
        ("wc -c < /srv/data/b.txt", "4\n"),
    ]);
}

#[test]
fn grep_knows_both_kinds_of_patterns() {
    say(&[
        ("grep -n two /srv/data/a.txt", "2:two\n"),
        (
            "cd /srv/data; grep two a.txt b.txt; grep -l one *.txt; grep -h t *.txt",
            "a.txt:two\nb.txt:two\na.txt\ntwo\nthree\ntwo\n",
        ),
        ("echo 'a+b' | grep 'a+b' && echo 'aab' | grep -E '^a+b$'", "a+b\naab\n"),
        ("echo 'one two' | grep -o '[a-z]*'", "one\ntwo\n"),
        ("echo 'a.b' | grep -F . && echo ab | grep -F . || echo none", "a.b\nnone\n"),
        ("echo ONE | grep -iq one && echo found", "found\n"),
        ("echo 'a b' | grep -w b && echo 'ab' | grep -w b || echo none", "a b\nnone\n"),
        ("printf 'foo\\nbar\\nbaz\\n' | grep -e foo -e 'ba[z]'", "foo\nbaz\n"),
        ("printf 'cat\\ndog\\n' | grep 'cat\\|dog' | wc -l", "2\n"),
    ]);
    fail(&[
        ("grep x /srv/data/a.txt", 1, ""),
        ("grep x /none", 2, "grep: /none: No such file or directory\n"),
        ("echo a | grep -E '('", 2, "grep: the pattern is no regular expression\n"),
        ("echo a | grep -E '((((a{1000}){1000}){1000}){1000})'", 2, "grep: the pattern is too large\n"),
    ]);
}

#[test]
fn reading_ends_with_a_line_that_nothing_ends_and_refuses_other_separators() {
    say(&[
        ("printf 'a\\nb' | while read l; do echo $l; done", "a\n"),
        ("printf b | { read l; echo $? $l; }", "1 b\n"),
        ("echo ' a b ' | { IFS= read -r l; echo \"<$l>\"; }", "< a b >\n"),
    ]);
    let error = "read: an IFS of other characters than blanks is not known here: `cut -d` is\n";
    fail(&[("echo a:b | { IFS=: read x y; }", 2, error)]);
}

#[test]
fn tests_hold_or_do_not() {
    for (text, code) in [
        ("test -f /charm/charmcraft.yaml", 0),
        ("[ -f charmcraft.yaml ]", 0),
        ("[ -d charmcraft.yaml ]", 1),
        ("[ -e /none ]", 1),
        ("[ ! -e /none ]", 0),
        ("[ -s /srv/data/a.txt -a -d /srv ]", 0),
        ("[ -e /none -o 1 -lt 2 ]", 0),
        ("[ a = a ]", 0),
        ("[ a != a ]", 1),
        ("[ \"$none\" ]", 1),
        ("[ -z \"$none\" ]", 0),
        ("[ 10 -gt 9 ]", 0),
        ("[ x -gt 9 ]", 2),
        ("[ a b c d ]", 2),
        ("[ a", 2),
        ("test", 1),
    ] {
        assert_eq!(World::new().run(text).code, Ok(code), "{text}");
    }
}

#[test]
fn sleeping_takes_time_that_somebody_else_measures() {
    let mut world = World::new();
    assert_eq!(world.run("sleep 1; sleep 0.5 2m").code, Ok(0));
    assert_eq!(world.slept, Duration::from_millis(121_500));
    fail(&[
        ("sleep x", 1, "sleep: invalid time interval ‘x’\nTry 'sleep --help' for more information.\n"),
        ("sleep", 1, "sleep: missing operand\nTry 'sleep --help' for more information.\n"),
    ]);
}

#[test]
fn what_is_not_there_is_not_found() {
    let help = "a sandbox has no programs, see `help exec` for what there is\n";
    fail(&[
        ("curl -s localhost", 127, &format!("curl: command not found: {help}")),
        ("systemctl status x || exit 3", 3, &format!("systemctl: command not found: {help}")),
        ("sudo true", 127, &format!("sudo: command not found: {help}")),
        ("/usr/bin/python3 -c 1", 127, &format!("/usr/bin/python3: command not found: {help}")),
        ("src/charm.py", 126, &format!("src/charm.py: cannot execute: {help}")),
        ("ls -l", 2, "ls: option -l is not known here\n"),
    ]);
    say(&[("curl x; echo $?", "127\n")]);
}
