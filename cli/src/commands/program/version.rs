//! `version`

use std::{
    env::consts::{ARCH, OS},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use periapt_host_api::{JUJU_VERSION, LEVEL};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::Context,
    error::Result,
    output::{Sink, to_json, to_yaml},
};

/// Print the version of Juju that this program is compatible with
///
/// It has Juju's form: the number, the system and the architecture. Clients and scripts decide by it what they can do,
/// and charms see the same in JUJU_VERSION. With --all this program's own version follows, which `periapt --version`
/// prints, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt version\n  periapt version --all --format json")]
pub(crate) struct Version {
    /// Also this program's own version, and that of the engine that hooks run in
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "smart")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The formats of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The version alone as it stands, several fields as YAML
    Smart,
    /// JSON, on one line
    Json,
    /// YAML
    Yaml,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct All {
    version: String,
    periapt_version: &'static str,
    engine: &'static str,
    /// The highest level of stored forms that the program knows.
    level: u32,
}

impl Verb for Version {
    async fn run(self, context: &Context) -> Result<()> {
        let version = full();
        let all = || All {
            version: version.clone(),
            periapt_version: env!("CARGO_PKG_VERSION"),
            engine: periapt_sandbox::engine_version(),
            level: LEVEL.0,
        };
        let text = match (self.all, self.format) {
            (true, Format::Json) => to_json(&all())?,
            (true, Format::Yaml | Format::Smart) => to_yaml(&all())?,
            (false, Format::Json) => to_json(&version)?,
            (false, Format::Yaml) => to_yaml(&version)?,
            (false, Format::Smart) => format!("{version}\n").into(),
        };
        Sink::new(self.output.as_deref(), context.color)?.write(&text)
    }
}

/// Returns `NUMBER-SYSTEM-ARCHITECTURE`, such as `3.6.26-linux-amd64`, which Juju's clients parse.
fn full() -> String {
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{JUJU_VERSION}-{OS}-{architecture}")
}
