//! Checks that the documents name existing things: commands, links, error pages, and the paths of the map.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use periapt_host_api::ErrorCode;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    let text = fs::read_to_string(root().join(path));
    assert!(text.is_ok(), "{path}: {text:?}");
    text.unwrap()
}

/// Returns all Markdown files of the documentation, relative to the root.
fn documents() -> Vec<String> {
    let mut documents: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(str::to_owned).into();
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(path),
                false if path.ends_with(".md") => documents.push(path),
                false => {}
            }
        }
    }
    documents
}

/// Returns each text between `open` and `close`.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split(close).next())
}

#[test]
fn the_first_screen_of_the_readme_has_the_two_commands_and_make_knows_them() {
    let screen: Vec<_> = read("README.md").lines().take(25).map(str::to_owned).collect();
    let makefile = read("Makefile");
    for command in ["demo", "test"] {
        let line = format!("make {command} ");
        assert!(
            screen.iter().any(|text| text.starts_with(&line)),
            "the README's first screen lacks `{line}`"
        );
        assert!(makefile.contains(&format!("\n{command}:")), "the Makefile has no target {command}");
    }
    assert!(read(".ci/run").contains("make test"), "CI passes the tests the way the README says");
}

#[test]
fn every_link_of_every_document_leads_somewhere() {
    let mut checked = 0;
    for document in documents() {
        let directory = root().join(&document).parent().unwrap().to_owned();
        let text = read(&document);
        for link in between(&text, "](", ')') {
            let path = link.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            assert!(directory.join(path).exists(), "{document} links to {link}, which is not there");
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} links were found: the search is broken");
}

#[test]
fn every_path_that_the_map_names_exists() {
    let text = read("ARCHITECTURE.md");
    let mut checked = 0;
    for quoted in between(&text, "`", '`') {
        let rooms = ["host-api/", "runtime/", "controller/", "cli/", "charms/", "tests/", "tools/", "docs/"];
        if rooms.iter().any(|room| quoted.starts_with(room)) && !quoted.contains('*') {
            assert!(root().join(quoted).exists(), "ARCHITECTURE.md names {quoted}, which is not there");
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} paths were found: the search is broken");
}

/// Appends the text of all Rust files below a directory of the repository.
fn sources(directory: &Path, into: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if name != "target" && !name.to_str().unwrap().starts_with('.') {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let text = read("ARCHITECTURE.md");
    let mut code = String::new();
    sources(&root(), &mut code);
    let mut checked = 0;
    for (index, row) in text.lines().filter(|line| line.starts_with("| I")).enumerate() {
        assert!(row.starts_with(&format!("| I{} |", index + 1)), "out of its order: {row}");
        let guards = row.split('|').nth(3).unwrap();
        let names: Vec<_> = guards.split('`').skip(1).step_by(2).filter(|name| !name.contains('/')).collect();
        assert!(guards.contains('`'), "no test guards this: {row}");
        for name in names {
            assert!(
                code.contains(&format!("fn {name}(")),
                "ARCHITECTURE.md names the test {name}, which is not there"
            );
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} names were found: the search is broken");
}

#[test]
fn every_error_code_has_its_page_and_every_page_its_code() {
    let codes: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| format!("{code}.md")).collect();
    let pages: BTreeSet<_> = fs::read_dir(root().join("docs/errors"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(codes, pages);
    for code in ErrorCode::ALL {
        let page = read(&format!("docs/errors/{code}.md"));
        assert!(page.starts_with(&format!("# `{code}`\n")), "the page of {code} begins otherwise");
        assert!(page.contains("**What to do.**"), "the page of {code} does not say what to do");
    }
}

#[test]
fn decisions_are_numbered_without_holes() {
    let mut numbers: Vec<u32> = fs::read_dir(root().join("docs/decisions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.split_once('-').and_then(|(number, _)| number.parse().ok()).ok_or(name).unwrap())
        .collect();
    numbers.sort_unstable();
    let expected: Vec<u32> = (1..).take(numbers.len()).collect();
    assert_eq!(
        numbers, expected,
        "a decision takes the number after the last one; none is left out or given twice"
    );
}
