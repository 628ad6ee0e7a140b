//! The rows.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// Where the rows are, in the repository.
const ROWS: &str = "tools/conformance/rows.yaml";

/// All rows, in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// By subject.
    pub sections: Vec<Section>,
}

/// Rows of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// What it is about.
    pub title: String,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// One behaviour that a charm can observe.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// A letter and two digits: the id in the conformance list.
    pub id: String,
    /// What it says, in a few words of our own.
    pub says: String,
    /// What Periapt does instead, on purpose; such a row needs no test, and a test of it shows what is done instead.
    #[serde(default)]
    pub differs: Option<String>,
    /// Set while no test is promised.
    #[serde(default)]
    pub open: bool,
}

/// What may be expected of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// A test shows it.
    Test,
    /// Periapt does something else.
    Difference,
    /// Nothing yet.
    None,
}

impl Row {
    /// What may be expected of it.
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
    /// There is none, it is not YAML of this form, or an id is none or comes twice.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join(ROWS);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads a list.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str) -> Result<Self> {
        let list: Self = serde_saphyr::from_str(text)?;
        let mut ids = BTreeSet::new();
        for row in list.rows() {
            ensure!(is_id(&row.id), "{:?} is no id: a capital letter and two digits", row.id);
            ensure!(ids.insert(&row.id), "row {} stands there twice", row.id);
        }
        Ok(list)
    }

    /// All rows, in order.
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
        for (ids, message) in
            [(["A01", "A01"], "row A01 stands there twice"), (["A01", "A1"], "\"A1\" is no id")]
        {
            let error = list(ids).map(|_| ()).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }
}
