//! The rules of the hook model, with the rows and tests that show them.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{
    Found,
    page::{cell, link},
    scan::{is_row, rows_of},
};

/// The path of the rules.
const RULES: &str = "tools/conformance/rules.yaml";

const HEAD: &str = "# Rules

The rules of the [hook model](hook-model.md), and what shows each: rows of
[conformance.md](conformance.md), tests, and cases of hook tools' tables. A test whose name begins
with a rule's id is found by itself; [testing.md](testing.md) says more.

This page is generated: `cargo run -p periapt-conformance` writes it anew, and a test says when it
is behind.
";

/// All rules, in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The id in the hook model: letters, a dash and a number.
    pub id: String,
    /// The rule, in our own words.
    pub says: String,
    /// Further evidence, beside the tests that are named after the rule: a row's id, a test's name, or
    /// `TOOL: CASE`.
    #[serde(default)]
    pub by: Vec<String>,
    /// Periapt's intended difference.
    #[serde(default)]
    pub instead: Option<String>,
}

/// Evidence for a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence<'a> {
    /// The tests of a row. Holds the row's id.
    Row(&'a str),
    /// A test, or a case of a table of hook tools.
    Test(&'a Found),
}

impl Rules {
    /// Reads the rules of a repository.
    ///
    /// # Errors
    /// An error for a missing file, invalid YAML, and an id that is not unique.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join(RULES);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let rules: Self = serde_saphyr::from_str(text)?;
        let mut ids = BTreeSet::new();
        for rule in rules.all() {
            ensure!(ids.insert(&rule.id), "rule {} is given twice", rule.id);
        }
        Ok(rules)
    }

    /// Returns all rules, in order.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.sections.iter().flat_map(|section| &section.rules)
    }

    /// Returns the page of the rules.
    ///
    /// # Errors
    /// An error if a rule names missing evidence.
    pub fn page(&self, tests: &[Found]) -> Result<String> {
        let mut text = HEAD.to_owned();
        let instead = self.all().filter(|rule| rule.instead.is_some()).count();
        let _ = writeln!(
            text,
            "\nOf {} rules, {instead} are followed otherwise, on purpose.",
            self.all().count()
        );
        for section in &self.sections {
            let _ =
                writeln!(text, "\n## {}\n\n| rule | what | shown by |\n| --- | --- | --- |", section.title);
            for rule in &section.rules {
                let mut lines: Vec<_> =
                    rule.instead.iter().map(|what| format!("*instead:* {what}")).collect();
                lines.extend(rule.shown_by(tests)?.iter().map(|shown| match shown {
                    Evidence::Row(id) => format!("row {id}"),
                    Evidence::Test(test) => link(test),
                }));
                let _ =
                    writeln!(text, "| {} | {} | {} |", rule.id, cell(&rule.says), cell(&lines.join("<br>")));
            }
        }
        Ok(text)
    }
}

impl Rule {
    /// Returns the evidence for this rule: the tests named after it, and those that its entry names.
    ///
    /// # Errors
    /// An error if the entry names missing evidence.
    pub fn shown_by<'a>(&'a self, tests: &'a [Found]) -> Result<Vec<Evidence<'a>>> {
        let mut shown: Vec<_> = tests.iter().filter(|test| is_named_after(&test.name, &self.id)).collect();
        let mut rows = Vec::new();
        for what in &self.by {
            if is_row(what) {
                let known = tests.iter().any(|test| rows_of(&test.name).contains(what));
                ensure!(known || self.instead.is_some(), "{}: no test shows row {what}", self.id);
                rows.push(Evidence::Row(what));
                continue;
            }
            let found: Vec<_> = tests.iter().filter(|test| test.is_meant(what)).collect();
            ensure!(!found.is_empty(), "{}: there is no test {what:?}", self.id);
            shown.extend(found);
        }
        Ok(rows.into_iter().chain(shown.into_iter().map(Evidence::Test)).collect())
    }
}

/// Returns true if a test's name has a rule's id at its beginning, perhaps behind other ids: `u23_...`,
/// `c_7_...`.
fn is_named_after(name: &str, id: &str) -> bool {
    let Some((letters, number)) = id.split_once('-') else { return false };
    let letters = letters.to_lowercase();
    let parts: Vec<_> = name.split(['_', ' ']).collect();
    let number_of = |part: &str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut place = 0;
    while let Some(part) = parts.get(place) {
        let bare = part.trim_end_matches(|character: char| character.is_ascii_digit());
        let digits = part.get(bare.len()..).unwrap_or_default();
        let next = parts.get(place + 1).copied().unwrap_or_default();
        if bare.is_empty() || bare.len() > 2 {
            return false;
        }
        // `c_7` is the rule C-7; `c07` is a row.
        let (digits, taken) = match digits.is_empty() {
            true if !next.is_empty() && number_of(next) => (next, 2),
            true => return false,
            false => (digits, 1),
        };
        if !is_row(&part.to_uppercase()) && bare == letters && digits == number {
            return true;
        }
        place += taken;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_the_rules_that_it_begins_with() {
        for (name, id) in [("u23_x", "U-23"), ("c_7_x", "C-7"), ("r23_r25_u24_x", "U-24"), ("m4_x", "M-4")] {
            assert!(is_named_after(name, id), "{name}");
        }
        for (name, id) in
            [("c07_x", "C-7"), ("u2_x", "U-23"), ("of_u23", "U-23"), ("u_x", "U-1"), ("m04_x", "M-4")]
        {
            assert!(!is_named_after(name, id), "{name}");
        }
        assert!(is_named_after("f21_r27_x", "R-27"), "behind a row");
    }

    #[test]
    fn what_a_rule_names_must_be_there() {
        let test =
            Found { file: "runtime/hook/tests/tools/is-leader.yaml".into(), name: "a01 the leader".into() };
        let tests = [test];
        let rule =
            |by: &str| Rule { id: "X-1".into(), says: String::new(), by: vec![by.into()], instead: None };
        assert_eq!(rule("A01").shown_by(&tests).unwrap(), [Evidence::Row("A01")]);
        assert_eq!(rule("is-leader: a01 the leader").shown_by(&tests).unwrap(), [Evidence::Test(&tests[0])]);
        for missing in ["A02", "is-leader: another", "leader-get: a01 the leader", "nobody"] {
            assert!(rule(missing).shown_by(&tests).is_err(), "{missing}");
        }
    }

    #[test]
    fn a_rule_stands_there_once() {
        let twice = "sections: [{title: t, rules: [{id: U-1, says: x}, {id: U-1, says: y}]}]";
        assert_eq!(Rules::parse(twice).unwrap_err().to_string(), "rule U-1 is given twice");
    }
}
