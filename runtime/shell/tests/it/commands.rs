//! Output and exit codes of the commands.

use std::time::Duration;

use crate::world::{World, fail, say};

#[test]
fn what_is_printed_is_as_bash_prints_it() {
    say(&[
        ("echo", "\n"),
        ("echo -n a", "a"),
        ("echo -e 'a\\tb'; echo 'a\\tb'", "a\tb\na\\tb\n"),
        ("echo -x -n", "-x -n\n"),
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
        ("echo aXb | tr aab xyz; printf 'aabb\\n' | tr -s ab xx; echo a-b | tr a- xy", "yXz\nx\nxyb\n"),
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
        ("echo 'one two' | grep -o '[a-z]*'; echo 'abab a' | grep -no 'ab\\|^a'", "one\ntwo\n1:ab\n1:ab\n"),
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
fn printf_puts_numbers_and_texts_into_columns_as_bash_does() {
    say(&[
        ("printf '%d %d %d\\n' 010 0x1f -0x1F", "8 31 -31\n"),
        (
            "printf '%+d|% d|%05d|%-5d|%5d|%.3d|%8.3d|%+.0d|%.0d|%08.3d|%+05d|% 05d\\n' 5 5 5 5 5 5 5 0 0 5 5 5",
            "+5| 5|00005|5    |    5|005|     005|+||     005|+0005| 0005\n",
        ),
        (
            "printf '%#x|%#o|%#X|%x|%X|%o|%u\\n' 255 8 255 255 255 8 -1",
            "0xff|010|0XFF|ff|FF|10|18446744073709551615\n",
        ),
        (
            "printf '%#x %#o|%#.3o|%#8x|%#08x|%x\\n' 0 0 8 255 255 -255",
            "0 0|010|    0xff|0x0000ff|ffffffffffffff01\n",
        ),
        ("printf '%#08o|%#.0o|%#5o|%#05o|%#o\\n' 8 0 8 0 0", "00000010|0|  010|00000|0\n"),
        (
            "printf '%*d|%-*d|%*d|%.*s|%*.*s|%.*s\\n' 5 7 5 7 -5 7 2 abc 5 2 abc -1 abc",
            "    7|7    |7    |ab|   ab|abc\n",
        ),
        ("printf '%s|%.2s|%5s|%-5s|%05s|%5.1s\\n' abc abc ab ab ab ab", "abc|ab|   ab|ab   |   ab|    a\n"),
        ("printf '%0-5d|%-05d|% +d|%.d|%.s|%5.d|\\n' 3 3 3 0 abc 0", "3    |3    |+3|||     |\n"),
        ("printf '%#+x|%+x|%+u|% o|%+s\\n' 5 5 5 5 a", "0x5|5|5|5|a\n"),
        ("printf '%ld %hd %lld %jd %zd %td\\n' 1 2 3 4 5 6", "1 2 3 4 5 6\n"),
        ("printf '%c|%5c|%-3c|\\n' abc x y", "a|    x|y  |\n"),
        ("printf '%5b|%.2b|%-5b|\\n' 'a\\tb' 'a\\tb' a", "  a\tb|a\t|a    |\n"),
        ("printf '%5s|\\n' é", "   é|\n"),
        ("printf '%d %d %d %d\\n' \"'a\" '\"b' \"'\" \"'é\"", "97 98 0 233\n"),
        ("printf '%u %u\\n' 18446744073709551615 -2", "18446744073709551615 18446744073709551614\n"),
        ("printf '%d|%d|%d\\n' '' ' 5' +5", "0|5|5\n"),
        ("printf '%s\\n' a b c; printf 'x\\n' a b; printf '%s %s\\n' a b c", "a\nb\nc\nx\na b\nc \n"),
        ("printf '%%|%s|' 'a%sb'; printf -- '-%s\\n' a; printf -", "%|a%sb|-a\n-"),
    ]);
}

#[test]
fn printf_makes_bytes_of_escapes_and_no_conversions() {
    say(&[
        ("printf '\\x25d\\n' 5", "%d\n"),
        ("printf '\\045s %b\\n' '\\045s'", "%s %s\n"),
        ("printf 'a\\cb'; echo; printf '%b-%s\\n' 'a\\cb' c; echo x", "a\\cb\nax\n"),
        ("printf '%b' 'a\\c' b c; printf '%b%b' 'a\\c' b", "aa"),
        ("printf '\\xe9\\377\\0101' | wc -c", "4\n"),
    ]);
    let mut world = World::new();
    world.run("printf '\\xe9|\\377|%b|%.1s|%c' '\\0351\\351' é é > /tmp/x; echo -ne '\\xe9\\0377' >> /tmp/x");
    let written = world.files.get("/tmp/x").cloned().flatten().unwrap();
    assert_eq!(written, b"\xe9|\xff|\xe9\xe9|\xc3|\xc3\xe9\xff");
}

#[test]
fn printf_goes_on_behind_what_is_no_number_and_ends_at_what_is_no_conversion() {
    let usage = "usage: printf [-v var] format [arguments]";
    for (text, code, stdout, stderr) in [
        ("printf '%d %s\\n' 12x a", 1, "12 a\n", "printf: 12x: invalid number\n"),
        ("printf '%d|%d\\n' x 3", 1, "0|3\n", "printf: x: invalid number\n"),
        ("printf '%d\\n' 08", 1, "0\n", "printf: 08: invalid octal number\n"),
        ("printf '%i\\n' 0x", 1, "0\n", "printf: 0x: invalid hex number\n"),
        ("printf '%d\\n' '5 '", 1, "5\n", "printf: 5 : invalid number\n"),
        ("printf '%d\\n' 3.7", 1, "3\n", "printf: 3.7: invalid number\n"),
        ("printf '%d\\n' --5", 1, "0\n", "printf: --5: invalid number\n"),
        ("printf '%d\\n' 0b11", 1, "0\n", "printf: 0b11: invalid number\n"),
        ("printf '%*d|\\n' x 3", 1, "3|\n", "printf: x: invalid number\n"),
        (
            "printf '%d\\n' 99999999999999999999",
            1,
            "9223372036854775807\n",
            "printf: 99999999999999999999: Numerical result out of range\n",
        ),
        (
            "printf '%d %u\\n' -99999999999999999999 1",
            1,
            "-9223372036854775808 1\n",
            "printf: -99999999999999999999: Numerical result out of range\n",
        ),
        ("printf 'a%y' 1", 1, "a", "printf: `y': invalid format character\n"),
        ("printf 'a%'", 1, "a", "printf: `%': missing format character\n"),
        ("printf '%5%|\\n'", 1, "", "printf: `%': invalid format character\n"),
        ("printf 'a%5000s' b", 1, "a", "printf: 5000: column too wide\n"),
        ("printf '%.99999999999999999999d' 1", 1, "", "printf: 9223372036854775807: column too wide\n"),
        ("printf '%*d' 5000 1", 1, "", "printf: 5000: column too wide\n"),
        ("printf", 2, "", &format!("printf: {usage}\n")),
        ("printf --", 2, "", &format!("printf: {usage}\n")),
        ("printf -q a", 2, "", &format!("printf: -q: invalid option\n{usage}\n")),
        ("printf '-%s\\n' a", 2, "", &format!("printf: -%: invalid option\n{usage}\n")),
    ] {
        let said = World::new().run(text);
        assert_eq!((said.code.clone(), &*said.stdout, &*said.stderr), (Ok(code), stdout, stderr), "{text}");
    }
}

#[test]
fn printf_assigns_to_a_variable_what_it_would_print() {
    say(&[
        ("printf -v x '%03d\\n' 7; echo \"<$x>\"; printf -vx b; echo $x", "<007\n>\nb\n"),
        ("printf -v x '%s,' a b c; echo $x", "a,b,c,\n"),
        (
            "printf -v x 'a\\0b'; echo \"<$x>\"; printf -v x 'a%y' 2>/dev/null; echo \"$? <$x>\"",
            "<a>\n1 <a>\n",
        ),
    ]);
    fail(&[
        ("printf -v 1x a", 2, "printf: `1x': not a valid identifier\n"),
        (
            "printf -v",
            2,
            "printf: -v: option requires an argument\nusage: printf [-v var] format [arguments]\n",
        ),
        ("printf -v x", 2, "printf: usage: printf [-v var] format [arguments]\n"),
    ]);
}

#[test]
fn reading_ends_with_a_line_that_nothing_ends() {
    say(&[
        ("printf 'a\\nb' | while read l; do echo $l; done", "a\n"),
        ("printf b | { read l; echo $? $l; }", "1 b\n"),
        ("echo ' a b ' | { IFS= read -r l; echo \"<$l>\"; }", "< a b >\n"),
    ]);
    fail(&[
        ("read -q x", 2, "read: option -q is not supported\n"),
        ("read 1x", 2, "read: 1x: not a valid identifier\n"),
    ]);
}

/// Returns the values that `names` have after a read of `input`, a format of `printf`, with `IFS`
/// and an option before it.
fn read(input: &str, read: &str, names: &str) -> String {
    let shown: Vec<String> = names.split(' ').map(|name| format!("<${{{name}}}>")).collect();
    let names = if names == "REPLY" { "" } else { names };
    let text = format!("printf '{input}' | {{ {read} {names}; echo \"$?{}\"; }}", shown.concat());
    World::new().run(&text).stdout
}

#[test]
fn a_backslash_quotes_what_is_read_and_joins_lines_unless_it_is_read_itself() {
    for (input, how, names, expected) in [
        (r"a\\b c\n", "read", "x y", "0<ab><c>\n"),
        (r"a\\ b c\n", "read", "x y", "0<a b><c>\n"),
        (r"a\\\nb c\n", "read", "x y", "0<ab><c>\n"),
        (r"one\\\n  two three\nnext\n", "read", "a b", "0<one><two three>\n"),
        (r"a\\\n", "read", "x", "1<a>\n"),
        (r"a\\", "read", "x", "1<a>\n"),
        (r"a\\\\n\n", "read", "x", "0<a\\n>\n"),
        (r"a\\b\n", "read -r", "x", "0<a\\b>\n"),
        (r"a\\b \n", "read", "REPLY", "0<ab >\n"),
        (r" a\\  \n", "read", "x", "0<a >\n"),
    ] {
        assert_eq!(read(input, how, names), expected, "{input}");
    }
}

#[test]
fn what_is_read_is_split_at_separators_as_bash_and_dash_do() {
    for (input, how, names, expected) in [
        (r"a:b:c\n", "IFS=: read", "x y", "0<a><b:c>\n"),
        (r"a:b:\n", "IFS=: read", "x y", "0<a><b>\n"),
        (r"a:b::\n", "IFS=: read", "x y", "0<a><b::>\n"),
        (r"a:b:c:\n", "IFS=: read", "x y", "0<a><b:c:>\n"),
        (r"a : b : c \n", "IFS=' :' read", "x y z", "0<a><b><c>\n"),
        (r":a\n", "IFS=: read", "x y", "0<><a>\n"),
        (r" :a\n", "IFS=' :' read", "x y", "0<><a>\n"),
        (r"a b :\n", "IFS=' :' read", "x y", "0<a><b>\n"),
        (r"a\\:b:c\n", "IFS=: read", "x y", "0<a:b><c>\n"),
        (r"a:\n", "IFS=: read", "x", "0<a>\n"),
        (r"a::b\n", "IFS=: read", "x y z", "0<a><><b>\n"),
        (r"a\tb\n", "IFS=, read", "x", "0<a\tb>\n"),
        (r"a b  c  \n", "read", "x y", "0<a><b  c>\n"),
        (r"a b\n", "read", "x y z", "0<a><b><>\n"),
    ] {
        assert_eq!(read(input, how, names), expected, "{input}");
    }
}

#[test]
fn tests_hold_or_do_not() {
    for (text, code) in [
        ("test -f /charm/charmcraft.yaml", 0),
        ("[ -f charmcraft.yaml ]", 0),
        ("[ -d charmcraft.yaml ]", 1),
        ("[ -e /none ]", 1),
        ("[ ! -e /none ]", 0),
        ("[ -w /tmp -a -w /srv/data/a.txt -a -r charmcraft.yaml ]", 0),
        ("[ -w charmcraft.yaml ]", 1),
        ("[ -w /charm ]", 1),
        ("[ -w / ]", 1),
        ("[ -w /none ]", 1),
        ("touch /tmp/x; [ -w /tmp/x ]", 0),
        ("[ -x /srv/data ]", 0),
        ("[ -x src/charm.py ]", 1),
        ("[ -r /none ]", 1),
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
fn sleeping_takes_time_that_the_host_measures() {
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
        ("ls -l", 2, "ls: option -l is not supported\n"),
    ]);
    say(&[("curl x; echo $?", "127\n")]);
}
