//! The tests of a repository.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The directory of the tables of hook tools, from the repository's root.
const TABLES: &str = "runtime/hook/tests/tools";

/// A test, or a case of a table of hook tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The file, from the repository's root.
    pub file: String,
    /// The name of the test or case.
    pub name: String,
}

impl Found {
    /// Returns true for the test's name, or for `TOOL: CASE` of the case.
    pub(crate) fn is_meant(&self, what: &str) -> bool {
        let file = Path::new(&self.file);
        match what.split_once(": ") {
            Some((tool, case)) => {
                is_table(file) && file.file_stem().is_some_and(|stem| stem == tool) && self.name == case
            }
            None => !is_table(file) && self.name == what,
        }
    }
}

/// Returns the tests in all Rust files of a repository, and the cases in its tables of hook tools.
///
/// # Errors
/// An error for a file that cannot be read.
pub fn tests(root: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for path in sources(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let names = if is_table(&path) { cases_of(&text) } else { tests_of(&text) };
        found.extend(names.into_iter().map(|name| Found { file: file.clone(), name: name.to_owned() }));
    }
    Ok(found)
}

/// Returns the tests with row ids at the beginning of their names, by id.
pub fn by_row(tests: &[Found]) -> BTreeMap<String, Vec<Found>> {
    let mut found: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for test in tests {
        for id in rows_of(&test.name) {
            found.entry(id).or_default().push(test.clone());
        }
    }
    found
}

/// Returns true for a row's id.
pub(crate) fn is_row(text: &str) -> bool {
    matches!(text.as_bytes(), [b'A'..=b'Q' | b'X' | b'Y', b'0'..=b'9', b'0'..=b'9'])
}

/// Returns true for a table of hook tools, as opposed to Rust code.
fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml")
}

/// Returns all Rust files of the repository and the tables of hook tools, in order.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let hidden = name == "target" || name.as_encoded_bytes().starts_with(b".");
            match entry.file_type()?.is_dir() {
                true if !hidden => directories.push(entry.path()),
                false if entry.path().extension().is_some_and(|extension| extension == "rs") => {
                    files.push(entry.path());
                }
                false if is_table(&entry.path()) && directory.ends_with(TABLES) => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the names of the functions with a test attribute.
fn tests_of(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
            if marked {
                names.extend(rest.split(['(', '<']).next());
            }
            marked = false;
        } else if !line.starts_with("//") {
            marked = false;
        }
    }
    names
}

/// Returns the names of a table's cases.
fn cases_of(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("- case: ")).collect()
}

/// Returns the row ids at the beginning of a name: `f13_f16_suspension_...` shows two rows.
pub(crate) fn rows_of(name: &str) -> Vec<String> {
    let parts = name.split(['_', ' ']).take_while(|part| part.bytes().all(|byte| !byte.is_ascii_uppercase()));
    parts.map(str::to_uppercase).take_while(|part| is_row(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_the_rows_that_it_begins_with() {
        assert_eq!(rows_of("f13_f16_suspension_and_f14"), ["F13", "F16"]);
        assert_eq!(rows_of("h01 a case of a table"), ["H01"]);
        assert_eq!(rows_of("r23_of_a_rule"), Vec::<String>::new(), "rules are no rows");
        assert_eq!(rows_of("waits_for_a01"), Vec::<String>::new());
    }

    #[test]
    fn only_functions_that_are_marked_are_tests() {
        // One line each, or the scan would find them as tests of this repository.
        let text = [
            "#[test]\nfn a01_one() {}",
            "#[tokio::test(start_paused = true)]\n// of two minds\n    async fn a02_two() {}",
            "fn a03_helper() {}",
            "#[test]\n#[cfg(unix)]\nfn a04_four<T>() {}",
            "#[derive(Debug)]\nstruct Between;\nfn a05_another_helper() {}",
        ]
        .join("\n");
        assert_eq!(tests_of(&text), ["a01_one", "a02_two", "a04_four"]);
    }
}
