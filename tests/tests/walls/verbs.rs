//! The verbs of the command line: no verb depends on another, no group on another group, and shared code on no verb.
//!
//! A file that declares a verb contains `impl Verb for`. The modules of a group are private, so the compiler
//! separates groups; this test keeps the modules private and checks within groups.

use std::{
    collections::BTreeSet,
    path::{Component, Path},
};

use crate::{no_breaches, root, sources, sources::Source};

/// The text that declares a verb.
const DECLARES: &str = "impl Verb for ";

/// Returns the modules of a file of `commands/`, from the group on.
fn modules(path: &Path) -> Vec<String> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let below = names.skip_while(|name| *name != "commands").skip(1);
    below.map(|name| name.trim_end_matches(".rs").to_owned()).collect()
}

/// Returns the group of a file, and its module in the group.
fn place(path: &Path) -> Option<(String, String)> {
    let mut modules = modules(path).into_iter();
    Some((modules.next()?, modules.next()?))
}

/// Returns the paths in a file's code that lead below `commands`, from the group on, with braces expanded:
/// `super::{a::B, c}` in `commands/GROUP/x.rs` gives `GROUP::a::B` and `GROUP::c`.
fn paths(modules: &[String], code: &str) -> BTreeSet<String> {
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = BTreeSet::new();
    for start in ["super::", "crate::"] {
        for (at, _) in code.match_indices(start) {
            let before = code.get(..at).unwrap_or_default();
            // The first word of a path: not the second `super` of `super::super`, nor the end of another word.
            if !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':') {
                expand("", code.get(at..).unwrap_or_default(), &mut found);
            }
        }
    }
    let resolved = |path: String| match path.strip_prefix("crate::") {
        Some(path) => path.strip_prefix("commands::").map(str::to_owned),
        None => {
            let (mut above, mut rest) = (modules, path.as_str());
            while let Some(after) = rest.strip_prefix("super::") {
                (above, rest) = (above.split_last().map_or(&[][..], |(_, above)| above), after);
            }
            Some(above.iter().map(String::as_str).chain([rest]).collect::<Vec<_>>().join("::"))
        }
    };
    // All files may use `Verb` of `commands` itself.
    let is_module = |path: &String| path.starts_with(|letter: char| letter.is_lowercase());
    found.into_iter().filter_map(resolved).filter(is_module).collect()
}

/// Collects the paths at the beginning of `text`, and returns the text after them.
fn expand<'a>(prefix: &str, text: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let path = format!("{prefix}{word}");
    let Some(mut rest) = rest.strip_prefix('{') else {
        found.insert(path);
        return rest;
    };
    loop {
        rest = expand(&path, rest.trim_start(), found).trim_start();
        // Skips ` as NAME` and the separator.
        let end = rest.find([',', '}', ';']).unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default();
        match rest.strip_prefix(',') {
            Some(more) if !more.trim_start().starts_with('}') => rest = more,
            Some(more) => return more.trim_start().strip_prefix('}').unwrap_or_default(),
            None => return rest.strip_prefix('}').unwrap_or(rest),
        }
    }
}

/// Returns the breaches between the files of the command line, one sentence each.
fn breaches(sources: &[Source]) -> Vec<String> {
    let code: Vec<_> = sources.iter().map(|source| (source.path.as_path(), source.code().text)).collect();
    let verbs: BTreeSet<_> =
        code.iter().filter(|(_, text)| text.contains(DECLARES)).filter_map(|(path, _)| place(path)).collect();
    let mut breaches = Vec::new();
    for (path, text) in &code {
        let (shown, is_group) = (path.display(), path.parent().is_some_and(|it| it.ends_with("commands")));
        let Some((group, module)) = place(path) else {
            if is_group && (text.contains("\npub mod ") || text.contains("\npub(crate) mod ")) {
                breaches.push(format!("{shown} opens a verb's module to other groups"));
            }
            continue;
        };
        for path in paths(&modules(path), text) {
            let mut words = path.split("::");
            let (Some(of), Some(named)) = (words.next(), words.next()) else { continue };
            let other = (of.to_owned(), named.to_owned());
            if other.0 != group {
                breaches.push(format!("{shown} knows the group {of}: {path}"));
            } else if other.1 != module && verbs.contains(&other) {
                breaches.push(format!("{shown} knows the verb {of}/{named}: {path}"));
            }
        }
    }
    breaches
}

#[test]
fn no_verb_knows_another_and_no_group_another_group() -> anyhow::Result<()> {
    let sources = sources::rust(&root()?.join("cli/src"))?;
    let declared: usize = sources
        .iter()
        .filter(|it| place(&it.path).is_some())
        .map(|it| it.code().text.matches(DECLARES).count())
        .sum();
    assert!(declared > 100, "{declared} verbs found: this wall looks past them");
    no_breaches("verbs know what is not theirs", &breaches(&sources));
    Ok(())
}

#[test]
fn what_verbs_share_knows_no_verb() -> anyhow::Result<()> {
    let shared = ["parse", "print", "follow", "upload", "output", "context", "data"];
    let sources = sources::rust(&root()?.join("cli/src"))?;
    let mut found = Vec::new();
    for room in shared {
        let of_room = |source: &&Source| {
            let path = source.path.to_string_lossy();
            path.contains(&format!("cli/src/{room}/")) || path.ends_with(&format!("cli/src/{room}.rs"))
        };
        assert!(sources.iter().any(|source| of_room(&source)), "the room {room} is not there");
        let of_room = sources.iter().filter(of_room);
        found.extend(of_room.flat_map(|source| source.code().lines_with(&["commands::"])));
    }
    no_breaches("what verbs share knows a verb", &found);
    Ok(())
}

#[test]
fn a_verb_that_knows_another_is_found() {
    let source = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
    let sources = [
        source("cli/src/commands/storage.rs", "mod add;\npub(crate) mod list;\n"),
        source(
            "cli/src/commands/storage/add.rs",
            "use super::{\n    list::{Listing, of},\n    names,\n};\nimpl Verb for Add {}\n",
        ),
        source("cli/src/commands/storage/list.rs", "mod drawn;\nimpl Verb for List {}\n"),
        source(
            "cli/src/commands/storage/list/drawn.rs",
            "use crate::{output::Table, commands::storage::list::Listing};\n",
        ),
        source(
            "cli/src/commands/storage/names.rs",
            "use crate::commands::{Verb, models::listed as other, storage::add};\n",
        ),
    ];
    assert_eq!(
        breaches(&sources),
        [
            "cli/src/commands/storage.rs opens a verb's module to other groups",
            "cli/src/commands/storage/add.rs knows the verb storage/list: storage::list::Listing",
            "cli/src/commands/storage/add.rs knows the verb storage/list: storage::list::of",
            "cli/src/commands/storage/names.rs knows the group models: models::listed",
            "cli/src/commands/storage/names.rs knows the verb storage/add: storage::add",
        ]
    );
}
