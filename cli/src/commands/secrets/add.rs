//! `add-secret`

use clap::Args;
use periapt_host_api::{
    command::{Answer, Command},
    secret::Confidential,
};

use super::content::ContentArgs;
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::Sink,
};

/// Add a secret of the model's users
///
/// A key that ends in #base64 has a value that is base64 already; one that ends in #file has the name of a file to
/// read it from. Prints the secret's URI.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-secret db-password password=hunter2\n  periapt add-secret tls cert#file=cert.pem key#file=key.pem\n  periapt add-secret db --file secret.yaml --info 'for the database'"
)]
pub(crate) struct AddSecret {
    /// Its name, unique in the model
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    content: ContentArgs,
    /// A text that describes it
    #[arg(long, value_name = "TEXT", default_value = "")]
    info: String,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for AddSecret {
    async fn run(self, context: &Context) -> Result<()> {
        let content = self.content.read()?;
        let content = content.ok_or_else(|| Failure::new("missing secret value or filename"))?;
        let model = context.model(&self.model)?;
        let content = Confidential::Open(content);
        let command = Command::AddSecret { id: None, name: self.name, content, description: self.info };
        match model.command(command).await? {
            Answer::Secret { id } => Ok(Sink::new(None, context.color)?.write(format!("{}\n", id.uri()))?),
            other => Err(Failure::unexpected(&other)),
        }
    }
}
