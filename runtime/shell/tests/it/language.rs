//! Syntax and semantics of the language.

use crate::world::{World, fail, say};

#[test]
fn lists_go_on_as_their_connectors_say() {
    say(&[
        ("echo a; echo b\necho c", "a\nb\nc\n"),
        ("true && echo yes || echo no", "yes\n"),
        ("false && echo yes || echo no", "no\n"),
        ("false || false || echo third", "third\n"),
        ("! false && echo negated", "negated\n"),
        ("false; echo $?; true; echo $?", "1\n0\n"),
        ("echo a # b; echo c", "a\n"),
        ("{ echo a; echo b; } | wc -l", "2\n"),
        ("# nothing but a word\n\n", ""),
    ]);
    for (text, code) in
        [("true", 0), ("false", 1), ("false; true", 0), ("exit 7; echo", 7), ("", 0), ("!true", 127)]
    {
        assert_eq!(World::new().run(text).code, Ok(code), "{text}");
    }
}

#[test]
fn pipes_lead_from_one_command_to_the_next() {
    say(&[
        ("echo foo | cat", "foo\n"),
        ("printf 'b\\na\\n' | sort | head -n 1", "a\n"),
        ("echo a | { read x; echo \"<$x>\"; }", "<a>\n"),
        ("printf '1 x\\n2 y\\n' | while read n rest; do echo \"$rest-$n\"; done", "x-1\ny-2\n"),
        // The variables that a stage sets end with it.
        ("x=1; x=2 | true; echo a | read x; echo $x", "1\n"),
        ("echo out; no-such-command 2>&1 | grep -c 'not found'", "out\n1\n"),
        ("no-such-command |& wc -l", "1\n"),
        ("exit 3 | true; echo $?", "0\n"),
        ("set -o pipefail; false | true; echo $?", "1\n"),
    ]);
}

#[test]
fn parameters_are_replaced_and_split_as_their_quotes_say() {
    say(&[
        ("echo $JUJU_UNIT_NAME ${JUJU_MODEL_NAME}s", "probe/0 defaults\n"),
        ("x='a  b'; echo $x; echo \"$x\"; echo '$x'", "a b\na  b\n$x\n"),
        ("x=; echo \"<$x>\" <${none}>", ""),
        ("x=; echo \"<$x>\" \"<${none}>\"", "<> <>\n"),
        (
            "echo ${none:-default} ${JUJU_MODEL_NAME:+set} ${none=assigned} $none",
            "default set assigned assigned\n",
        ),
        ("x=; echo \"${x-unset}\" ${x:-empty}", " empty\n"),
        ("x=a/b/c; echo ${x%/*} ${x%%/*} ${x#*/} ${x##*/} ${#x}", "a/b a b/c c 5\n"),
        ("x='*'; echo \"${x#'*'}\" end", " end\n"),
        ("set -- a 'b c'; echo $# $2; for x in \"$@\"; do echo \"<$x>\"; done", "2 b c\n<a>\n<b c>\n"),
        ("A=b printenv A; echo \"<$A>\"", "b\n<>\n"),
        ("export A=b; sh -c 'echo $A'", "b\n"),
        ("x=a\"b $JUJU_UNIT_NAME\"'c'; echo \"$x\"", "ab probe/0c\n"),
        ("for x; do echo $x; done; echo none", "none\n"),
        ("sh -c 'for x; do echo $x; done' name 1 2", "1\n2\n"),
        ("sh -c 'echo $0 $1' name one", "name one\n"),
        ("echo a$", "a$\n"),
    ]);
    fail(&[
        ("set -u; echo $none", 1, "none: unbound variable\n"),
        ("echo ${none:?must be set}; echo", 1, "none: must be set\n"),
    ]);
}

#[test]
fn substitutions_are_what_their_commands_write() {
    say(&[
        ("echo $(echo a; echo b)", "a b\n"),
        ("echo \"$(echo a; echo b)\"", "a\nb\n"),
        ("echo `echo a \\`echo b\\``", "a b\n"),
        ("x=$(false); echo $?; x=$(true) ; echo $?", "1\n0\n"),
        ("x=$(echo \"$(echo 'in)side')\"); echo $x", "in)side\n"),
        ("echo $((1 + 2 * 3)) $(( (1+2)*3 ))", "7 9\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i + 1)); echo $i; done", "1\n2\n3\n"),
        ("i=2; echo $((i * $(echo 3)))", "6\n"),
        ("x=$(exit 5); echo $?; echo after", "5\nafter\n"),
    ]);
    fail(&[("echo $((1 / 0))", 1, "arithmetic: division by 0\n")]);
}

#[test]
fn separators_files_and_octal_numbers_mean_what_they_mean_in_bash() {
    say(&[
        ("l=a,b,,c; IFS=,; for x in $l; do echo \"<$x>\"; done", "<a>\n<b>\n<>\n<c>\n"),
        ("x=$(</srv/data/b.txt); echo \"<$x>\"", "<two>\n"),
        ("echo $((010)) $((0x10))", "8 16\n"),
    ]);
    fail(&[("x=$(</none); echo $?", 0, "/none: No such file or directory\n")]);
}

#[test]
fn conditions_and_loops_turn_on_exit_codes() {
    say(&[
        ("if true; then echo a; else echo b; fi", "a\n"),
        ("if false; then echo a; elif true; then echo b; else echo c; fi", "b\n"),
        ("if false; then echo a; fi; echo $?", "0\n"),
        ("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "1\n3\n"),
        ("for i in 1 2 3; do for j in a b; do [ $i = 2 ] && break 2; echo $i$j; done; done", "1a\n1b\n"),
        ("until test -n \"$x\"; do x=$x.; echo $x; done", ".\n"),
        ("while true; do break; done; echo $?", "0\n"),
        ("for f in a b\ndo\n  echo $f\ndone", "a\nb\n"),
        ("( x=1; cd /tmp; exit 3 ); echo $? \"<$x>\" $PWD", "3 <> /charm\n"),
        ("{ x=1; }; echo $x", "1\n"),
        ("while read line; do echo \"<$line>\"; done < /srv/data/b.txt", "<two>\n"),
    ]);
}

#[test]
fn errexit_ends_a_script_but_for_its_conditions() {
    say(&[
        ("set -e; false; echo no", ""),
        ("set -e; false || true; if false; then :; fi; ! true; echo yes", "yes\n"),
        ("set -euo pipefail; x=$(false) || echo caught; false | true; echo no", "caught\n"),
        ("set -e; (false); echo no", ""),
        ("sh -ec 'false; echo no'; echo after", "after\n"),
        ("set -e; set +e; false; echo yes", "yes\n"),
    ]);
    assert_eq!(World::new().run("set -e; true; sh -c 'exit 9'; true").code, Ok(9));
    assert_eq!(World::new().run("set -x; echo a").stderr, "+ echo a\n");
}

#[test]
fn a_text_that_is_no_script_fails_with_2_and_runs_nothing() {
    fail(&[
        ("echo a; echo 'b", 2, "syntax error: a quote is not closed\n"),
        ("echo(", 2, "syntax error: functions are not part of what `exec` understands\n"),
        ("echo a; )", 2, "syntax error: unexpected \")\"\n"),
        (
            "sleep 1 & echo",
            2,
            "syntax error: commands in the background are not part of what `exec` understands\n",
        ),
    ]);
    assert_eq!(World::new().run("echo a; echo 'b").stdout, "");
    // A nested script's syntax error is its own.
    say(&[("sh -c 'echo \"'; echo $?", "2\n")]);
}
