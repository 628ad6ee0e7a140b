//! The page of the conformance list.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{Found, List, Promise, Row};

const HEAD: &str = "# Conformance

What charms can observe, row by row, and which test shows it. A test, or a case of a hook tool's
table, shows a row when its name begins with the row's id, wherever it stands;
[testing.md](testing.md) says how to add one. [rules.md](rules.md) goes by the rules of the hook
model.

This page is generated: `cargo run -p periapt-conformance` writes it anew, and a test says when it
is behind.
";

/// Returns the page of a list with its tests.
pub fn page(list: &List, tests: &BTreeMap<String, Vec<Found>>) -> String {
    let mut text = HEAD.to_owned();
    let shown = list.rows().filter(|row| tests.contains_key(&row.id)).count();
    let differ = list.rows().filter(|row| row.promise() == Promise::Difference).count();
    let all = list.rows().count();
    let _ = writeln!(text, "\nOf {all} rows, {shown} have tests; {differ} differ on purpose.");
    for section in &list.sections {
        let _ = writeln!(text, "\n## {}\n\n| row | what | shown by |\n| --- | --- | --- |", section.title);
        for row in &section.rows {
            let found = tests.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            let _ = writeln!(text, "| {} | {} | {} |", row.id, cell(&row.says), cell(&shown_by(row, found)));
        }
    }
    text
}

fn shown_by(row: &Row, found: &[Found]) -> String {
    let mut lines = Vec::new();
    if let Some(differs) = &row.differs {
        lines.push(format!("*differs on purpose:* {differs}"));
    }
    if found.is_empty() && row.differs.is_none() {
        lines.push("not yet".to_owned());
    }
    lines.extend(found.iter().map(link));
    lines.join("<br>")
}

/// Formats a link to a test.
pub(crate) fn link(test: &Found) -> String {
    format!("[{}](../{}) `{}`", room(&test.file), test.file, test.name)
}

/// Returns a short name of a file: the crate's directory and the file.
fn room(file: &str) -> String {
    let crate_directory = file.split(['/']).take_while(|part| *part != "src" && *part != "tests").last();
    let stem = file.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or(file);
    format!("{}/{stem}", crate_directory.unwrap_or("tests"))
}

pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        let rows = "[{id: A01, says: one}, {id: A02, says: a|b, open: true}, {id: A03, says: c, differs: otherwise}]";
        List::parse(&format!("sections: [{{title: t, rows: {rows}}}]")).unwrap()
    }

    #[test]
    fn each_row_has_its_tests_or_says_why_not() {
        let test = Found { file: "runtime/lab/tests/conformance/startup.rs".into(), name: "a01_x".into() };
        let text = page(&list(), &BTreeMap::from([("A01".to_owned(), vec![test])]));
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| A")).collect();
        assert_eq!(
            rows,
            [
                "| A01 | one | [lab/startup](../runtime/lab/tests/conformance/startup.rs) `a01_x` |",
                "| A02 | a\\|b | not yet |",
                "| A03 | c | *differs on purpose:* otherwise |",
            ]
        );
        assert!(text.contains("Of 3 rows, 1 have tests; 1 differ on purpose."));
    }

    #[test]
    fn a_file_is_named_by_its_crate_and_itself() {
        assert_eq!(room("host-api/src/charms/charm/parse.rs"), "host-api/parse");
        assert_eq!(room("tests/tests/cli/mistakes.rs"), "tests/mistakes");
        assert_eq!(room("runtime/hook/tests/tools/relation-get.yaml"), "hook/relation-get");
    }
}
