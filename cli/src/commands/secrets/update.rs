//! `update-secret`

use clap::Args;
use periapt_host_api::{
    command::{Command, SecretSelector},
    secret::Confidential,
};

use super::content::ContentArgs;
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
};

/// Change a secret of the model's users
///
/// Content that differs from the latest makes a new revision.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt update-secret db-password password=secret2\n  periapt update-secret db-password --name db --auto-prune"
)]
pub(crate) struct UpdateSecret {
    /// Its name, id or URI
    #[arg(value_name = "SECRET")]
    secret: String,
    #[command(flatten)]
    content: ContentArgs,
    /// A new name
    #[arg(long)]
    name: Option<String>,
    /// A text that describes it
    #[arg(long, value_name = "TEXT")]
    info: Option<String>,
    /// Remove revisions that no reader tracks any more
    #[arg(long)]
    auto_prune: Option<bool>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for UpdateSecret {
    async fn run(self, context: &Context) -> Result<()> {
        let content = self.content.read()?.map(Confidential::Open);
        if content.is_none() && self.name.is_none() && self.info.is_none() && self.auto_prune.is_none() {
            return Err(Failure::new("specify a new value or metadata to update the secret"));
        }
        let model = context.model(&self.model)?;
        let command = Command::UpdateSecret {
            secret: SecretSelector::from(self.secret.as_str()),
            content,
            name: self.name,
            description: self.info,
            auto_prune: self.auto_prune,
        };
        model.command(command).await.map(|_| ())
    }
}
