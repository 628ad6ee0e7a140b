//! The query of a URL.

use periapt_pebble::{CheckLevel, PodRefusal};

/// The pairs of a query. Its length is bounded by that of a head.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query.
    pub(super) fn read(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// Returns the first value of a name, or nothing.
    pub(super) fn first(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns all values of a name, those with commas apart.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(known, _)| known == name);
        values
            .flat_map(|(_, value)| value.split(','))
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns all values of a name as they are.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    }

    /// Returns the level of checks.
    pub(super) fn level(&self) -> Result<Option<CheckLevel>, PodRefusal> {
        match self.first("level") {
            "" => Ok(None),
            text => match CheckLevel::from_word(text) {
                Some(level) => Ok(Some(level)),
                None => Err(PodRefusal::bad("level must be \"alive\" or \"ready\"")),
            },
        }
    }
}
