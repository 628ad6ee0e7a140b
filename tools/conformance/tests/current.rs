//! The page in the repository is that of the code, and what the list promises is kept.

use std::path::{Path, PathBuf};

use periapt_conformance::{List, PAGE, Promise, page, tests};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_in_the_repository_is_that_of_the_code() {
    let page = page(&List::read(&root()).unwrap(), &tests(&root()).unwrap());
    let kept = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    let differs = page.lines().zip(kept.lines()).find(|(now, kept)| now != kept);
    assert!(page == kept, "run `cargo run -p periapt-conformance`; first difference: {differs:?}");
}

#[test]
fn every_row_that_is_promised_has_a_test() {
    let (list, tests) = (List::read(&root()).unwrap(), tests(&root()).unwrap());
    let promised = list.rows().filter(|row| row.promise() == Promise::Test);
    let missing: Vec<_> = promised.filter(|row| !tests.contains_key(&row.id)).map(|row| &row.id).collect();
    assert!(missing.is_empty(), "no test begins with these ids: {missing:?}");
    assert!(tests.len() > 100, "only {} rows were found in the sources: the search is broken", tests.len());
}

#[test]
fn every_test_that_is_named_like_a_row_names_one_of_the_list() {
    let (list, tests) = (List::read(&root()).unwrap(), tests(&root()).unwrap());
    let unknown: Vec<_> = tests.iter().filter(|(id, _)| list.rows().all(|row| row.id != **id)).collect();
    assert!(unknown.is_empty(), "the list has no such rows: {unknown:?}");
}

#[test]
fn a_row_that_has_a_test_is_open_no_longer() {
    let (list, tests) = (List::read(&root()).unwrap(), tests(&root()).unwrap());
    let open = list.rows().filter(|row| row.promise() == Promise::None);
    let shown: Vec<_> = open.filter(|row| tests.contains_key(&row.id)).map(|row| &row.id).collect();
    assert!(shown.is_empty(), "take `open: true` from these rows, so that their tests stay: {shown:?}");
}
