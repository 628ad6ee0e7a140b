//! `init`: a new charm.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use periapt_host_api::ApplicationName;
use periapt_pack::Template;

use super::source;
use crate::{
    commands::Verb,
    context::Context,
    error::{Failure, Result},
};

/// Make a new charm
///
/// It is a small charm that packs, passes its tests, and is active once it is deployed; its README explains how. The
/// directory must be new or empty; its name is the charm's.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt init --language js ./my-charm
  periapt init --language rust charms/billing --name acme-billing")]
pub(crate) struct Init {
    /// The directory
    directory: PathBuf,
    /// The language that it is written in
    #[arg(short, long, value_enum)]
    language: Choice,
    /// The charm's name, if it is not the directory's
    #[arg(long)]
    name: Option<ApplicationName>,
}

/// The languages, by their names on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Choice {
    /// With its SDK
    Rust,
    /// On the ops framework, as for Juju
    Python,
    /// JavaScript, or TypeScript, with its SDK
    #[value(alias = "javascript")]
    Js,
    /// With its SDK
    C,
    /// With its SDK
    #[value(alias = "golang")]
    Go,
}

impl Verb for Init {
    async fn run(self, context: &Context) -> Result<()> {
        let template = match self.language {
            Choice::Rust => Template::Rust,
            Choice::Python => Template::Python,
            Choice::Js => Template::JavaScript,
            Choice::C => Template::C,
            Choice::Go => Template::Go,
        };
        let name = match self.name {
            Some(name) => name,
            None => named_after(&self.directory)?,
        };
        template.make(&self.directory, name.as_str()).map_err(source::failed)?;
        let shown = self.directory.display();
        context.say(format_args!(
            "Made {name} in {shown}\n\nNow you can run\n\tcd {shown} && {}\nto test it, and\n\tperiapt pack {shown} && periapt deploy ./{name}.charm",
            template.tested_by()
        ));
        Ok(())
    }
}

/// Returns the default name of the charm in a directory.
fn named_after(directory: &std::path::Path) -> Result<ApplicationName> {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.parse().map_err(|error: periapt_host_api::NameError| {
        Failure::new(error.to_string()).with_hint("say the charm's name with --name")
    })
}
