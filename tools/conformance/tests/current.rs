//! Checks that the generated pages are current, and that the list keeps its promises.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use periapt_conformance::{List, PAGE, Promise, RULES_PAGE, Rules, by_row, page, tests};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assert_current(place: &str, page: &str) {
    let kept = std::fs::read_to_string(root().join(place)).unwrap_or_default();
    let differs = page.lines().zip(kept.lines()).find(|(now, kept)| now != kept);
    assert!(page == kept, "run `cargo run -p periapt-conformance`; first difference: {differs:?}");
}

#[test]
fn the_pages_in_the_repository_are_those_of_the_code() {
    assert_current(PAGE, &page(&List::read(&root()).unwrap(), &by_row(&tests(&root()).unwrap())));
    assert_current(RULES_PAGE, &Rules::read(&root()).unwrap().page(&tests(&root()).unwrap()).unwrap());
}

#[test]
fn every_rule_is_shown_or_says_what_is_done_instead() {
    let (rules, tests) = (Rules::read(&root()).unwrap(), tests(&root()).unwrap());
    let bare: Vec<_> = rules
        .all()
        .filter(|rule| rule.instead.is_none() && rule.shown_by(&tests).unwrap().is_empty())
        .map(|rule| &rule.id)
        .collect();
    assert!(bare.is_empty(), "nothing shows these rules: {bare:?}");
}

#[test]
fn every_rule_stands_once_in_the_hook_model() {
    let model = std::fs::read_to_string(root().join("docs/hook-model.md")).unwrap();
    let defined = model.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    let mut defined: Vec<_> = defined.map(|(id, _)| id.to_owned()).collect();
    let mut listed: Vec<_> = Rules::read(&root()).unwrap().all().map(|rule| rule.id.clone()).collect();
    defined.sort_unstable();
    listed.sort_unstable();
    assert_eq!(defined, listed, "docs/hook-model.md and tools/conformance/rules.yaml have the same rules");
}

/// The number of rules in the hook model, by letter.
const RULES: &[(&str, usize)] = &[
    ("U", 48),
    ("R", 42),
    ("C", 9),
    ("E", 3),
    ("T", 9),
    ("S", 10),
    ("M", 15),
    ("L", 8),
    ("P", 7),
    ("F", 4),
    ("D", 7),
    ("ST", 5),
    ("W", 6),
    ("N", 3),
    ("A", 6),
    ("UP", 2),
];

#[test]
fn no_rule_of_the_hook_model_is_left_out() {
    let rules = Rules::read(&root()).unwrap();
    let there: BTreeSet<_> = rules.all().map(|rule| rule.id.clone()).collect();
    let all = RULES
        .iter()
        .flat_map(|(letters, count)| (1..=*count).map(move |number| format!("{letters}-{number}")));
    assert_eq!(there, all.collect());
}

#[test]
fn every_row_that_is_promised_has_a_test() {
    let (list, tests) = (List::read(&root()).unwrap(), by_row(&tests(&root()).unwrap()));
    let promised = list.rows().filter(|row| row.promise() == Promise::Test);
    let missing: Vec<_> = promised.filter(|row| !tests.contains_key(&row.id)).map(|row| &row.id).collect();
    assert!(missing.is_empty(), "no test begins with these ids: {missing:?}");
    assert!(tests.len() > 100, "only {} rows were found in the sources: the search is broken", tests.len());
}

#[test]
fn every_test_that_is_named_like_a_row_names_one_of_the_list() {
    let (list, tests) = (List::read(&root()).unwrap(), by_row(&tests(&root()).unwrap()));
    let unknown: Vec<_> = tests.iter().filter(|(id, _)| list.rows().all(|row| row.id != **id)).collect();
    assert!(unknown.is_empty(), "the list has no such rows: {unknown:?}");
}

#[test]
fn a_row_that_has_a_test_is_open_no_longer() {
    let (list, tests) = (List::read(&root()).unwrap(), by_row(&tests(&root()).unwrap()));
    let open = list.rows().filter(|row| row.promise() == Promise::None);
    let shown: Vec<_> = open.filter(|row| tests.contains_key(&row.id)).map(|row| &row.id).collect();
    assert!(shown.is_empty(), "take `open: true` from these rows, so that their tests stay: {shown:?}");
}
