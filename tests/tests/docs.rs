//! Checks that the documents name existing things (commands, links, error pages, the paths of the map), and that the
//! documents which comments cite exist.

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
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned).into();
    let mut directories = vec!["docs".to_owned(), "packaging".to_owned()];
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
    assert!(
        read(".github/workflows/ci.yml").contains("run: bash .ci/run\n"),
        "the workflow runs what everybody can run before a push"
    );
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
            assert!(directory.join(path).exists(), "{document} links to {link}, which does not exist");
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} links were found: the search is broken");
}

/// Returns the decision that the text of a link names: `decision 7`, or the number alone in a list of them.
fn named_decision(text: &str) -> Option<u32> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [number] | [.., "decision" | "Decision" | "decisions" | "Decisions", number] => number.parse().ok(),
        _ => None,
    }
}

/// Returns the number of the decision that a path leads to.
fn decision_of(path: &str) -> Option<u32> {
    let (number, _) = path.rsplit('/').next()?.split_once('-')?;
    number.parse().ok().filter(|_| number.len() == 4)
}

#[test]
fn links_that_name_a_decision_lead_to_it() {
    let mut checked = 0;
    for document in documents() {
        let text = read(&document);
        for (open, _) in text.match_indices("](") {
            let (before, after) = text.split_at(open);
            let named = before.rsplit('[').next().and_then(named_decision);
            let path = between(after, "](", ')').next().unwrap();
            if let (Some(named), Some(number)) = (named, decision_of(path)) {
                assert_eq!(named, number, "{document} names decision {named} and links to {path}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} links were found: the search is broken");
}

/// Finds all Markdown files below a directory of the repository.
fn markdown(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_str().unwrap();
        if entry.file_type().unwrap().is_dir() {
            if !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
                markdown(&path, into);
            }
        } else if name.ends_with(".md") {
            into.push(path);
        }
    }
}

/// The most columns of a line of prose.
const COLUMNS: usize = 100;

/// Returns true if a line of prose has a blank outside of code and links, where it could be broken.
fn breaks(line: &str) -> bool {
    let text =
        line.trim_start().trim_start_matches(|mark: char| "-*+.)".contains(mark) || mark.is_ascii_digit());
    let (mut code, mut brackets) = (false, 0_u32);
    text.trim_start().chars().any(|character| {
        match character {
            '`' => code = !code,
            '[' | '(' if !code => brackets += 1,
            ']' | ')' if !code => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        character == ' ' && !code && brackets == 0
    })
}

/// Returns the numbers of the lines of a document that are too long. Tables, headings and code may be wider.
fn too_long(text: &str) -> Vec<usize> {
    let mut fence = None;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                let prose = !bare.starts_with(['|', '#']) && !line.starts_with("    ");
                if prose && line.chars().count() > COLUMNS && breaks(line) {
                    found.push(index + 1);
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn prose_in_markdown_is_wrapped() {
    let mut files = Vec::new();
    markdown(&root(), &mut files);
    let mut long = Vec::new();
    for file in &files {
        let lines = too_long(&fs::read_to_string(file).unwrap());
        long.extend(lines.iter().map(|line| format!("{}:{line}", file.display())));
    }
    assert!(long.is_empty(), "these lines have more than {COLUMNS} columns: {long:#?}");
    assert!(files.len() > 100, "only {} documents were found: the search is broken", files.len());
}

#[test]
fn a_line_that_is_too_long_is_found_and_what_cannot_be_broken_is_not() {
    let words = "word ".repeat(21);
    assert_eq!(too_long(&words), [1]);
    assert_eq!(too_long(&format!("short\n\n- {words}")), [3]);
    let unbroken = "x".repeat(120);
    for text in [
        format!("```\n{words}\n```"),
        format!("| {words} |"),
        format!("# {words}"),
        format!("    {words}"),
        format!("- [{words}]({unbroken})"),
        format!("`{words}`"),
        unbroken,
    ] {
        assert_eq!(too_long(&text), [0; 0], "{text}");
    }
}

#[test]
fn every_path_that_the_map_names_exists() {
    let text = read("ARCHITECTURE.md");
    let mut checked = 0;
    for quoted in between(&text, "`", '`') {
        let rooms = [
            "host-api/",
            "runtime/",
            "controller/",
            "cli/",
            "charms/",
            "tests/",
            "tools/",
            "docs/",
            "packaging/",
        ];
        if rooms.iter().any(|room| quoted.starts_with(room)) && !quoted.contains('*') {
            assert!(root().join(quoted).exists(), "ARCHITECTURE.md names {quoted}, which does not exist");
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} paths were found: the search is broken");
}

/// Finds the files with comments below a directory of the repository.
fn commented(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_str().unwrap();
        if entry.file_type().unwrap().is_dir() {
            // A template is copied to other repositories, so its citations refer to its own files.
            if !["target", "templates", "node_modules"].contains(&name) && !name.starts_with('.') {
                commented(&path, into);
            }
        } else if ["rs", "yaml", "toml", "wit"].iter().any(|end| name.ends_with(&format!(".{end}"))) {
            into.push(path);
        }
    }
}

/// Returns the text of a comment line, or `None` for code.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//").or_else(|| line.strip_prefix("# "))
}

/// Returns the documents that a comment names, each with the text behind it. Only a link's target counts, not its
/// text.
fn cited(comment: &str) -> impl Iterator<Item = (&str, &str)> {
    comment.match_indices(".md").filter_map(|(at, end)| {
        let (before, after) = (comment.get(..at)?, comment.get(at + end.len()..)?);
        let in_path = |character: char| character.is_ascii_alphanumeric() || "_-./".contains(character);
        let start = before.rfind(|character| !in_path(character)).map_or(0, |place| place + 1);
        let text_of_a_link = comment.get(..start)?.ends_with('[');
        let longer = after.starts_with(|character: char| character.is_ascii_alphanumeric());
        (start < at && !text_of_a_link && !longer).then_some((comment.get(start..at + end.len())?, after))
    })
}

#[test]
fn every_document_that_a_comment_cites_is_in_the_repository() {
    let mut files = Vec::new();
    commented(&root(), &mut files);
    let mut checked = 0;
    let mut missing = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            for (document, _) in comment(line).into_iter().flat_map(cited) {
                checked += 1;
                if !root().join(document).exists() && !file.parent().unwrap().join(document).exists() {
                    missing.push(format!("{}: {document}", file.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "these comments cite what is not in the repository: {missing:#?}");
    assert!(checked > 100, "only {checked} citations were found: the search is broken");
}

#[test]
fn every_section_and_rule_of_the_hook_model_that_a_comment_cites_is_there() {
    let model = read("docs/hook-model.md");
    let headings: BTreeSet<_> = model
        .lines()
        .filter_map(|line| line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")))
        .filter_map(|heading| heading.split(' ').next())
        .collect();
    let mut files = Vec::new();
    commented(&root(), &mut files);
    let mut checked = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (document, after) in text.lines().filter_map(comment).flat_map(cited) {
            if document != "docs/hook-model.md" {
                continue;
            }
            // `docs/hook-model.md` 1.7, U-12, section 0)
            let words = after.trim_start_matches('`').split(|character: char| " ,;:()".contains(character));
            let mut words = words.map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty());
            let Some(first) = words.find(|word| !["section", "sections", "rule"].contains(word)) else {
                continue;
            };
            let known = match first.split_once('-') {
                Some((letters, _)) if letters.chars().all(|letter| letter.is_ascii_uppercase()) => {
                    model.contains(&format!("- **{first}**"))
                }
                _ if first.starts_with(|digit: char| digit.is_ascii_digit()) => headings.contains(first),
                _ => continue,
            };
            assert!(known, "{} cites {first} of the hook model, which does not exist", file.display());
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} citations were found: the search is broken");
}

/// Appends the text of all Rust files below a directory.
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
                "ARCHITECTURE.md names the test {name}, which does not exist"
            );
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} names were found: the search is broken");
}

/// The calls of the state's indexes over all models.
const ACROSS_MODELS: &[&str] = &[
    "unit_count_at(",
    "models_at(",
    "is_going(",
    "is_name_taken(",
    "model_named(",
    "models_named(",
    "granted_models(",
    "granted_models_named(",
    "granted_models_using(",
    "granted_models_with(",
    "models_offering_to(",
    "was_granted_a_write(",
    "models_using(",
    "uses_charm(",
    "uses_content(",
    "busy_models_after(",
    "root.behind(",
    "root.lapses(",
    "root.models()",
    "models_and_remains(",
    "migrating_models(",
];

#[test]
fn each_file_that_reads_across_models_is_listed() {
    let text = read("docs/design/replication.md");
    let (_, section) = text.split_once("\n## What reads across models\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let (mut found, mut missing) = (0, Vec::new());
    for sources in ["controller/model/src", "controller/server/src"] {
        let sources = root().join(sources);
        let mut files = Vec::new();
        commented(&sources, &mut files);
        for file in files {
            let name = file.strip_prefix(&sources).unwrap().to_str().unwrap().to_owned();
            let code = fs::read_to_string(&file).unwrap();
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
            // The indexes themselves, and the state of tests.
            let is_index = name.starts_with("root") || name == "api/test_state.rs";
            if !is_index && ACROSS_MODELS.iter().any(|call| code.contains(call)) {
                found += 1;
                if !section.contains(&format!("`{name}`")) {
                    missing.push(name);
                }
            }
        }
    }
    assert!(missing.is_empty(), "docs/design/replication.md does not list these files: {missing:?}");
    assert!(found > 15, "only {found} files were found: the search is broken");
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
