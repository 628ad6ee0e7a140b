//! `refresh`: another charm for an application.

use std::path::PathBuf;

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command};

use super::charm::Charm;
use crate::{
    context::{Context, ModelArg},
    error::Result,
};

/// Give an application another version of its charm
///
/// Its units run upgrade-charm, each between two hooks.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt refresh wordpress --path ./wordpress.charm")]
pub(crate) struct Refresh {
    /// The application
    application: ApplicationName,
    /// The charm: a directory or a .charm file
    #[arg(long, value_name = "CHARM")]
    path: PathBuf,
    /// Also in units whose hook has failed: they are upgraded first, and run the hook again
    #[arg(long, visible_alias = "force")]
    force_units: bool,
    #[command(flatten)]
    model: ModelArg,
}

impl Refresh {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let charm = Charm::read(&self.path)?;
        let before = model.client().application(&model.selector, &self.application).await?;
        let digest = charm.upload(model.client()).await?;
        if before.charm_digest == digest {
            context.say(format_args!(
                "Application \"{}\" has this charm already, digest {}",
                self.application,
                digest.short()
            ));
        }
        let command = Command::Refresh {
            application: self.application.clone(),
            charm: digest,
            force: self.force_units,
        };
        model.command(command).await?;
        if before.charm_digest != digest {
            context.say(format_args!(
                "Refreshing \"{}\" from {} to local charm \"{}\", digest {}",
                self.application,
                before.charm,
                charm.inspected.meta.name,
                digest.short()
            ));
        }
        Ok(())
    }
}
