//! Valid and invalid scripts.

use proptest::prelude::*;

use super::*;
use crate::syntax::{AndOr, Body, Kind};

const DEPTH: u32 = 20;

fn refused(text: &str) -> String {
    parse(text, DEPTH).unwrap_err().to_string()
}

/// Returns the words of a simple command that consist of one piece of text.
fn words(text: &str) -> Vec<String> {
    let list = parse(text, DEPTH).unwrap();
    let [AndOr { first, .. }] = list.items.as_slice() else { panic!("{list:?}") };
    let Body::Simple { words, .. } = &first.stages[0].body else { panic!("{first:?}") };
    words
        .iter()
        .map(|word| {
            let text = |piece: &crate::syntax::Piece| match &piece.kind {
                Kind::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            };
            word.iter().map(text).collect()
        })
        .collect()
}

#[test]
fn quotes_keep_together_what_they_enclose() {
    for (text, expected) in [
        ("echo foo", vec!["echo", "foo"]),
        ("status-set active 'all; well' \"\"", vec!["status-set", "active", "all; well", ""]),
        ("a'b'\"c\"\\ d", vec!["abc d"]),
        ("echo \"a \\\"b\\\" \\n\"", vec!["echo", "a \"b\" \\n"]),
        ("echo a#b # and more", vec!["echo", "a#b"]),
        ("echo a \\\n b", vec!["echo", "a", "b"]),
        ("echo $ a$", vec!["echo", "$", "a$"]),
        ("  echo\tü  \n", vec!["echo", "ü"]),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn a_text_that_is_no_script_says_where_it_is_wrong() {
    for (text, error) in [
        ("echo 'a", "a quote is not closed"),
        ("echo \"a", "a quote is not closed"),
        ("echo `a", "a backtick is not closed"),
        ("echo $(a", "a substitution is not closed"),
        ("echo ${a", "a `${` is not closed"),
        ("echo ${}", "unexpected \"}\""),
        ("(echo", "a parenthesis is not closed"),
        ("echo )", "unexpected \")\""),
        ("| cat", "unexpected \"|\""),
        ("echo |", "unexpected end of the text"),
        ("echo a &&", "unexpected end of the text"),
        ("; echo", "unexpected \";\""),
        ("echo a ;; echo", "unexpected \";;\""),
        ("if true; then echo", "an `if` is not closed"),
        ("if true; fi", "unexpected \"fi\""),
        ("while true; do done", "unexpected \"done\""),
        ("done", "unexpected \"done\""),
        ("{ echo", "a `{` is not closed"),
        ("for 1 in a; do echo; done", "unexpected \"1\""),
        ("echo >", "unexpected end of the text"),
        ("echo > ;", "unexpected \";\""),
    ] {
        let said = refused(text);
        assert!(said == format!("syntax error: {error}") || said.ends_with(error), "{text}: {said}");
    }
}

#[test]
fn what_is_not_here_is_named() {
    for (text, what) in [
        ("sleep 1 &", "commands in the background"),
        ("cat <<EOF", "here-documents"),
        ("cat <<< a", "here-documents"),
        ("case a in a) ;; esac", "`case` commands"),
        ("f() { echo; }", "functions"),
        ("[[ -f a ]]", "`[[` commands (`[` is there)"),
        ("((a = 1))", "`((` commands"),
        ("echo ${a/b/c}", "such changes of parameters"),
        ("echo 3>a", "redirections of other streams than 0, 1 and 2"),
        ("echo $'a'", "`$'...'` quotes"),
    ] {
        assert_eq!(refused(text), format!("syntax error: {what} are not part of what `exec` understands"));
    }
}

#[test]
fn nesting_is_bounded_whatever_nests() {
    for (open, close) in [
        ("( ", ")"),
        ("{ ", "; }"),
        ("echo $(", ")"),
        ("echo \"$(", ")\""),
        ("echo ${a:-", "}"),
        ("if true; then ", "; fi"),
        ("while true; do ", "; done"),
        ("for a in b; do ", "; done"),
    ] {
        let nested = |times: usize| format!("{}echo{}", open.repeat(times), close.repeat(times));
        assert!(parse(&nested(4), DEPTH).is_ok(), "{open}");
        let said = refused(&nested(100_000));
        assert!(said.contains("nested more than 20 deep"), "{open}: {said}");
    }
}

proptest! {
    /// Texts of the language's own characters: none panics, hangs or overflows the stack.
    #[test]
    fn any_text_is_read_or_refused(
        text in "([ \n|&;<>(){}$`'\"\\\\#!=:*?-]|if|then|else|fi|do|done|while|for|in|a|1|echo){0,200}"
    ) {
        let _ = parse(&text, DEPTH);
    }

    #[test]
    fn any_text_of_any_characters_is_read_or_refused(text in any::<String>()) {
        let _ = parse(&text, DEPTH);
    }
}
