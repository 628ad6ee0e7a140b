//! Parameters of type `bool`. A call such as `f(x, true)` does not say what is true: an enum, two functions or a struct
//! with named fields do.

use crate::{host_workspace, no_breaches, sources};

/// The numbers of such parameters that each crate has, with the reasons. They only shrink.
const REMAINING: &[(&str, usize)] = &[
    // Three turn a flag of the command line into an enum; serde names the fourth.
    ("periapt", 4),
    // The value of a query.
    ("periapt-client", 1),
    // Facts that callers ask the snapshot and the run for, in the call itself: does another unit lead, is this an
    // action.
    ("periapt-hook", 2),
    // A fact about a relation, passed on by its name.
    ("periapt-lab", 1),
    // Trust is a value that is stored and hashed (2); `subordinate` is a charm's; `force` comes as a field of a request
    // and is asked for once (2).
    ("periapt-model", 5),
];

/// Returns the names of a text's functions, once for each parameter of type `bool`.
fn of(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts = code.get(..at).and_then(|before| before.chars().next_back());
        if starts.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let Some((name, rest)) = code.get(at + 3..).and_then(named) else { continue };
        let parameters = parameters(rest);
        found.extend(parameters.split(',').filter(|one| is_bool(one)).map(|_| name));
    }
    found
}

/// Splits a function's name from the text after it.
fn named(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    text.split_at_checked(end).filter(|(name, _)| !name.is_empty())
}

/// Returns the parameters at the beginning of a text, after generic ones.
fn parameters(text: &str) -> &str {
    let Some(text) = after_generics(text).strip_prefix('(') else { return "" };
    let mut depth = 1_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(..at).unwrap_or_default();
        }
    }
    ""
}

/// Returns a text without the generic parameters at its beginning.
fn after_generics(text: &str) -> &str {
    let (mut depth, mut before) = (0_usize, ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let end = if letter == '>' { at + 1 } else { at };
            return text.get(end..).unwrap_or_default();
        }
        before = letter;
    }
    ""
}

fn is_bool(parameter: &str) -> bool {
    parameter.split_once(": ").is_some_and(|(_, kind)| matches!(kind.trim(), "bool" | "Option<bool>"))
}

#[test]
fn functions_have_no_more_parameters_of_type_bool() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    let mut breaches = Vec::new();
    for room in graph.members() {
        let mut found = Vec::new();
        for source in sources::rust(&graph.directory(room)?.join("src"))? {
            let is_test = source.path.ends_with("tests.rs") || source.path.iter().any(|part| part == "tests");
            if !is_test {
                let code = source.code();
                found
                    .extend(of(&code.text).iter().map(|name| format!("{name} in {}", source.path.display())));
            }
        }
        let allowed = REMAINING.iter().find(|(name, _)| *name == room).map_or(0, |(_, count)| *count);
        if found.len() > allowed {
            let all = found.join("\n    ");
            breaches.push(format!("{room} has {} of them, {allowed} are allowed:\n    {all}", found.len()));
        }
        if found.len() < allowed {
            breaches.push(format!("{room} has {} of them: lower its number from {allowed}", found.len()));
        }
    }
    no_breaches(
        "parameters of type bool: write an enum, two functions or a struct with named fields",
        &breaches,
    );
    Ok(())
}

#[test]
fn parameters_of_type_bool_are_found_in_any_function() {
    let code = "fn one(a: bool) {}\npub fn two<F: Fn(u8) -> bool>(\n    f: F,\n    force: bool,\n) -> bool {\n    let it: bool = f(1);\n}\n\
                fn none(of: &bool, what: impl Fn(bool)) -> bool;\nstruct S { field: bool }\nlet often = |x: bool| x;";
    assert_eq!(of(code), ["one", "two"]);
}
