//! In which form something is printed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{ColorChoice, Sink};
use crate::error::{Explain as _, Result};

/// The forms that every listing has.
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

/// Where and how a listing is printed.
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
    /// The same, with YAML in place of a table: what Juju prints where it has none.
    pub(crate) fn or_yaml(&self) -> Self {
        let format = match self.format {
            Format::Tabular => Format::Yaml,
            other => other,
        };
        Self { format, output: self.output.clone() }
    }

    /// Prints a value, or the table that `tabular` draws of it.
    pub(crate) fn print<T: Serialize>(
        &self,
        color: ColorChoice,
        value: &T,
        tabular: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        let text = match self.format {
            Format::Tabular => tabular(value),
            Format::Json => to_json(value)?,
            Format::Yaml => to_yaml(value)?,
        };
        Sink::new(self.output.as_deref(), color)?.write(&text)
    }
}

/// JSON on one line, with a line break at its end.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    let mut text = serde_json::to_string(value).explain(|| "cannot write JSON".to_owned())?;
    text.push('\n');
    Ok(text)
}

/// YAML, with a line break at its end.
pub(crate) fn to_yaml<T: Serialize>(value: &T) -> Result<String> {
    let mut text = serde_saphyr::to_string(value).explain(|| "cannot write YAML".to_owned())?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
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
}
