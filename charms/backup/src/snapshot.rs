//! A backup and its text form.

use periapt_sdk::{Context, Error, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::SystemTime;

/// The published data of a source, by key.
pub(crate) type Content = BTreeMap<String, String>;

#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) id: u64,
    /// The application that the backup is of.
    pub(crate) source: String,
    /// The time of the backup, in RFC 3339.
    pub(crate) made: String,
    /// The reason of the backup.
    pub(crate) note: String,
    /// The SHA-256 of the content, in hex.
    pub(crate) sha256: String,
    pub(crate) content: Content,
}

impl Snapshot {
    pub(crate) fn new(id: u64, source: String, note: String, content: Content) -> Result<Self> {
        let made = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Ok(Self { id, source, made, note, sha256: digest(&content)?, content })
    }

    pub(crate) fn to_text(&self) -> String {
        let Self { id, source, made, note, sha256, content } = self;
        let document = json!({
            "id": id, "source": source, "made": made, "note": note, "sha256": sha256, "content": content,
        });
        document.to_string()
    }

    /// Reads the text of [`to_text`](Self::to_text).
    ///
    /// # Errors
    ///
    /// When the text is damaged.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let mut document: Value = serde_json::from_str(text).context("it is damaged")?;
        let content = document.get_mut("content").map(Value::take).unwrap_or_default();
        let content: Content = serde_json::from_value(content).context("it is damaged")?;
        let id = document.get("id").and_then(Value::as_u64).context("it is damaged: it has no id")?;
        let text = |key| {
            let text = document.get(key).and_then(Value::as_str);
            text.map(str::to_owned).context(format!("it is damaged: it has no {key}"))
        };
        let sha256 = text("sha256")?;
        let found = digest(&content)?;
        if found != sha256 {
            let message = format!("it is damaged: its content has the digest {found}, not {sha256}");
            return Err(Error::new(message));
        }
        Ok(Self { id, source: text("source")?, made: text("made")?, note: text("note")?, sha256, content })
    }
}

fn digest(content: &Content) -> Result<String> {
    let text = serde_json::to_string(content).context("writing content as JSON")?;
    Ok(Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let content = [("post-1", "Cats"), ("post-2", "Dogs \"and\"\nmore")];
        let content = content.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Snapshot::new(7, "blog".to_owned(), "before".to_owned(), content).unwrap()
    }

    #[test]
    fn a_backup_is_read_as_it_was_written() {
        let snapshot = snapshot();
        assert_eq!(Snapshot::from_text(&snapshot.to_text()).unwrap(), snapshot);
        assert_eq!(snapshot.sha256.len(), 64);
    }

    #[test]
    fn a_backup_that_was_changed_or_cut_is_damaged() {
        let text = snapshot().to_text();
        for damaged in [text.replace("Cats", "Rats"), text.replace('}', ""), String::new()] {
            let error = Snapshot::from_text(&damaged).unwrap_err().to_string();
            assert!(error.starts_with("it is damaged: "), "{error}");
        }
    }
}
