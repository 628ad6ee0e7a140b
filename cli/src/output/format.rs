//! Output formats.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{ColorChoice, Sink, Text};
use crate::error::{Explain as _, Result};

/// The formats of every listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    #[value(alias = "plain", alias = "smart")]
    Tabular,
    /// JSON, on one line.
    Json,
    /// YAML.
    Yaml,
}

/// The formats of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    /// For people
    Text,
    /// A JSON object per line
    Json,
}

/// The format and the destination of a listing.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(long, value_enum, default_value = "tabular")]
    pub(crate) format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl OutputArgs {
    /// Returns these options with YAML in place of a table, for listings without a table in Juju.
    pub(crate) fn or_yaml(&self) -> Self {
        let format = match self.format {
            Format::Tabular => Format::Yaml,
            other => other,
        };
        Self { format, output: self.output.clone() }
    }

    /// Prints a value, or the table that `tabular` draws of it.
    pub(crate) fn print<T: Serialize, P: Into<Text>>(
        &self,
        color: ColorChoice,
        value: &T,
        tabular: impl FnOnce(&T) -> P,
    ) -> Result<()> {
        let text = match self.format {
            Format::Tabular => tabular(value).into(),
            Format::Json => to_json(value)?,
            Format::Yaml => to_yaml(value)?,
        };
        Sink::new(self.output.as_deref(), color)?.write(text)
    }
}

/// Formats JSON on one line, with a line break at its end.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Text> {
    let mut text = serde_json::to_string(value).explain(|| "cannot write JSON".to_owned())?;
    text.push('\n');
    Ok(Text::json(text))
}

/// Formats YAML, with a line break at its end.
pub(crate) fn to_yaml<T: Serialize>(value: &T) -> Result<Text> {
    let mut text = serde_saphyr::to_string(value).explain(|| "cannot write YAML".to_owned())?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(Text::value(text))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn texts_that_look_like_something_else_stay_texts_in_yaml() {
        let value = json!({
            "charm": "local:mysql-0", "life": "", "machine": "0", "message": "a: b # c\nd", "no": "no",
            "port": 80, "since": null, "units": {}, "ports": ["80/tcp", "~"],
        });
        let text = to_yaml(&value).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text}");
    }

    #[test]
    fn each_character_comes_back_from_json_and_from_yaml() {
        let characters: Vec<String> = ('\0'..=char::MAX).map(String::from).collect();
        // Some characters are special at an end, at a beginning, or alone.
        let all = characters.concat();
        let some = characters
            .iter()
            .take(0x3000)
            .map(|c| json!([c, format!("a{c}"), format!("{c}b"), format!("a{c}b")]));
        let value = json!({"all": all, "some": some.collect::<Vec<_>>()});
        assert_eq!(serde_json::from_str::<Value>(&to_json(&value).unwrap()).unwrap(), value);
        let budget = serde_saphyr::options! { budget: None };
        let read: Value = serde_saphyr::from_str_with_options(&to_yaml(&value).unwrap(), budget).unwrap();
        assert_eq!(read["some"], value["some"]);
        assert!(read == value, "the text of all characters has changed");
    }
}
