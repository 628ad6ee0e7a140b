//! The rules for the words of prose: the first word of summaries in doc comments, and words in the place of an actor.

use std::path::Path;

use crate::{
    no_breaches, root,
    sources::{self, Source},
};

/// The words that must not begin a summary. "If" and "When" may begin the sentences after it.
const OPENINGS: &[&str] = &["What", "How", "Whether", "Where", "Of", "Who", "Whose", "Which", "That"];

/// The words that leave open who acts. An actor has a name: controller, agent, charm, operator, a unit, the caller.
const NAMELESS: &[&str] = &["whoever", "somebody", "anybody"];

/// The extensions of the files that the rule for actors covers.
const WITH_PROSE: &[&str] = &["rs", "py", "md", "yaml", "c", "h", "go", "js", "ts"];

/// The files that may contain these words: the rule, this test of it, and the history.
const EXCEPT: &[&str] = &["CONTRIBUTING.md", "tests/tests/walls/prose.rs", "CHANGELOG.md"];

/// Returns each line that has a word in the place of an actor, as `path:line: word`. Words of names, as in
/// `secret_of_somebody`, count.
fn nameless(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        let words = line.split(|letter: char| !letter.is_alphanumeric());
        for word in words.filter(|word| NAMELESS.iter().any(|nameless| word.eq_ignore_ascii_case(nameless))) {
            found.push(format!("{}:{number}: {word}", source.path.display()));
        }
    }
    found
}

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

#[test]
fn actors_have_names() -> anyhow::Result<()> {
    let root = root()?;
    let mut breaches = Vec::new();
    for source in sources::with_extensions(&root, WITH_PROSE)? {
        let path = source.path.strip_prefix(&root)?.to_owned();
        if !EXCEPT.iter().any(|except| path == Path::new(except)) {
            breaches.extend(nameless(&Source { path, text: source.text }));
        }
    }
    no_breaches("an actor has a name (CONTRIBUTING.md)", &breaches);
    Ok(())
}

#[test]
fn a_nameless_actor_is_found_as_a_word_and_in_a_name() {
    let text = "# Whoever asks.\nsecret_of_somebody\nan anybody, or\nsomebodys\nThe caller.\n".to_owned();
    let found = nameless(&Source { path: Path::new("a.py").to_owned(), text });
    assert_eq!(found, ["a.py:1: Whoever", "a.py:2: somebody", "a.py:3: anybody"]);
}
