//! The rule for the first word of summaries in doc comments.

use std::path::Path;

use crate::{
    no_breaches, root,
    sources::{self, Source},
};

/// The words that must not begin a summary. "If" and "When" may begin the sentences after it.
const OPENINGS: &[&str] = &["What", "How", "Whether", "Where", "Of", "Who", "Whose", "Which", "That"];

/// Returns each summary of a source that begins with a forbidden word, as `path:line: text`.
fn riddles(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut within = "";
    for (number, line) in (1..).zip(source.text.lines()) {
        let line = line.trim_start();
        let kind = ["///", "//!"].into_iter().find(|kind| line.starts_with(kind)).unwrap_or_default();
        let text = line.strip_prefix(kind).unwrap_or_default().trim_start();
        let opening = text.split_whitespace().next().unwrap_or_default();
        if !kind.is_empty() && within != kind && OPENINGS.contains(&opening) {
            found.push(format!("{}:{number}: {text}", source.path.display()));
        }
        within = kind;
    }
    found
}

#[test]
fn summaries_begin_with_a_verb_or_a_noun() -> anyhow::Result<()> {
    let root = root()?;
    let mut breaches = Vec::new();
    for source in sources::rust(&root)? {
        let path = source.path.strip_prefix(&root)?.to_owned();
        breaches.extend(riddles(&Source { path, text: source.text }));
    }
    no_breaches("a summary begins with its verb or its noun (CONTRIBUTING.md)", &breaches);
    Ok(())
}

#[test]
fn a_riddle_is_found_at_the_beginning_of_a_summary_alone() {
    let text = "//! The room.\n/// What it is.\nstruct A;\n/// A lease.\n/// Of 60 s.\nstruct B;\n// What\n"
        .to_owned();
    let found = riddles(&Source { path: Path::new("a.rs").to_owned(), text });
    assert_eq!(found, ["a.rs:2: What it is."]);
}
