//! The rows of the conformance list.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The path of the list.
const ROWS: &str = "tools/conformance/rows.yaml";

/// All rows, in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The sections, one per subject.
    pub sections: Vec<Section>,
}

/// The rows of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The subject.
    pub title: String,
    /// The section's rows.
    pub rows: Vec<Row>,
}

/// One behaviour that a charm can observe.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The id: a letter and two digits.
    pub id: String,
    /// The behaviour, in our own words.
    pub says: String,
    /// Periapt's intended difference. Such a row needs no test; a test of it shows the difference.
    #[serde(default)]
    pub differs: Option<String>,
    /// True if the row promises no test yet.
    #[serde(default)]
    pub open: bool,
}

/// The promise of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// A test shows it.
    Test,
    /// Periapt differs on purpose.
    Difference,
    /// There is no promise yet.
    None,
}

impl Row {
    /// Returns the row's promise.
    pub fn promise(&self) -> Promise {
        match (&self.differs, self.open) {
            (Some(_), _) => Promise::Difference,
            (None, false) => Promise::Test,
            (None, true) => Promise::None,
        }
    }
}

impl List {
    /// Reads the list of a repository.
    ///
    /// # Errors
    /// An error for a missing file, invalid YAML, and an id that is invalid or not unique.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join(ROWS);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses a list.
    ///
    /// # Errors
    /// The errors of [`Self::read`] except for missing files.
    pub fn parse(text: &str) -> Result<Self> {
        let list: Self = serde_saphyr::from_str(text)?;
        let mut ids = BTreeSet::new();
        for row in list.rows() {
            ensure!(is_id(&row.id), "{:?} is no id: a capital letter and two digits", row.id);
            ensure!(ids.insert(&row.id), "row {} is given twice", row.id);
        }
        Ok(list)
    }

    /// Returns all rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }
}

fn is_id(text: &str) -> bool {
    matches!(text.as_bytes(), [b'A'..=b'Z', b'0'..=b'9', b'0'..=b'9'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_none_or_comes_twice_is_refused() {
        let list = |ids: [&str; 2]| {
            let rows = ids.map(|id| format!("{{id: {id}, says: x}}")).join(", ");
            List::parse(&format!("sections: [{{title: t, rows: [{rows}]}}]"))
        };
        assert!(list(["A01", "A02"]).is_ok());
        for (ids, message) in [(["A01", "A01"], "row A01 is given twice"), (["A01", "A1"], "\"A1\" is no id")]
        {
            let error = list(ids).map(|_| ()).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }
}
