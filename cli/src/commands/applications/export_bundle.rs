//! `export-bundle`.

use std::path::PathBuf;

use clap::Args;
use periapt_host_api::bundle;

use super::bundle::read;
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{Sink, to_yaml},
};

/// Write a model as a bundle
///
/// Deployed into an empty model of the same controller, the bundle makes the same again. It names charms and resources by
/// their digests; for another controller, put the paths of files there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt export-bundle\n  periapt export-bundle --filename shop.yaml")]
pub(crate) struct ExportBundle {
    /// A file to write, instead of standard output
    #[arg(long, visible_alias = "output", short = 'o', value_name = "FILE")]
    filename: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ExportBundle {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let read = read(&model).await?;
        if read.applications.is_empty() {
            return Err(Failure::new(format!("model {} has no applications", model.selector)));
        }
        let text = to_yaml(&bundle::export(&read))?;
        Sink::new(self.filename.as_deref(), context.color)?.write(&text)?;
        if let Some(path) = &self.filename {
            context.say(format_args!("Bundle successfully exported to {}", path.display()));
        }
        Ok(())
    }
}
