//! `show-secret`

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Args, ValueEnum};
use periapt_host_api::{api::SecretQuery, secret::SecretRevision};

use super::shown::{Revisions, ShownSecret};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{Sink, to_json, to_yaml},
};

/// The forms of `show-secret`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShowFormat {
    Yaml,
    Json,
}

/// Show a secret
///
/// Content is shown with --reveal alone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt show-secret db-password\n  periapt show-secret db-password --reveal --revision 2\n  periapt show-secret db-password --revisions --format json"
)]
pub(crate) struct ShowSecret {
    /// Its name, id or URI
    #[arg(value_name = "SECRET")]
    secret: String,
    /// Show its content
    #[arg(long)]
    reveal: bool,
    /// Show the content of this revision
    #[arg(short, long)]
    revision: Option<SecretRevision>,
    /// List all its revisions, without content
    #[arg(long)]
    revisions: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "yaml")]
    format: ShowFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ShowSecret {
    async fn run(self, context: &Context) -> Result<()> {
        for (given, option) in [(self.reveal, "--reveal"), (self.revision.is_some(), "--revision")] {
            if self.revisions && given {
                let text = format!("specify either --revisions or {option} but not both");
                return Err(Failure::misused(text));
            }
        }
        let model = context.model(&self.model)?;
        let query = SecretQuery { reveal: self.reveal, revision: self.revision };
        let found = model.client().secret(&model.selector, &self.secret, &query).await?;
        let found = found.ok_or_else(|| Failure::new(format!("secret {:?} not found", self.secret)))?;
        let id = found.id.to_string();
        let revisions = if self.revisions { Revisions::Listed } else { Revisions::LeftOut };
        let shown = ShownSecret::of(&found, revisions);
        let text = match self.format {
            ShowFormat::Yaml => to_yaml(&BTreeMap::from([(id, shown.for_yaml())]))?,
            ShowFormat::Json => to_json(&BTreeMap::from([(id, shown)]))?,
        };
        Sink::new(self.output.as_deref(), context.color)?.write(&text)
    }
}
