//! `remove-secret`

use clap::Args;
use periapt_host_api::{
    command::{Command, SecretSelector},
    secret::SecretRevision,
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Remove a secret of the model's users, or one revision of it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt remove-secret db-password\n  periapt remove-secret db-password --revision 2"
)]
pub(crate) struct RemoveSecret {
    /// Its name, id or URI
    #[arg(value_name = "SECRET")]
    secret: String,
    /// Only this revision
    #[arg(long)]
    revision: Option<SecretRevision>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for RemoveSecret {
    async fn run(self, context: &Context) -> Result<()> {
        let secret = SecretSelector::from(self.secret.as_str());
        let command = Command::RemoveSecret { secret, revision: self.revision };
        context.model(&self.model)?.command(command).await.map(|_| ())
    }
}
