//! Secrets of the model's users: `add-secret`, `update-secret`, `grant-secret`, `revoke-secret`, `remove-secret`;
//! and all of the model: `secrets`, `show-secret`.

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    command::{Answer, Command, SecretSelector},
    secret::{Confidential, SecretRevision},
};

use super::content::ContentArgs;
use crate::{
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
    /// Remove revisions that nobody reads any more
    #[arg(long)]
    auto_prune: Option<bool>,
    #[command(flatten)]
    model: ModelArg,
}

/// Let applications read a secret of the model's users
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt grant-secret db-password wordpress,mysql")]
pub(crate) struct GrantSecret {
    /// Its name, id or URI
    #[arg(value_name = "SECRET")]
    secret: String,
    /// The applications whose units may read it from now on, joined by commas
    #[arg(value_name = "APPLICATION,...", value_delimiter = ',', required = true)]
    applications: Vec<ApplicationName>,
    #[command(flatten)]
    model: ModelArg,
}

/// Take back that applications may read a secret
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt revoke-secret db-password wordpress")]
pub(crate) struct RevokeSecret {
    /// Its name, id or URI
    #[arg(value_name = "SECRET")]
    secret: String,
    /// The applications whose units may no longer read it, joined by commas
    #[arg(value_name = "APPLICATION,...", value_delimiter = ',', required = true)]
    applications: Vec<ApplicationName>,
    #[command(flatten)]
    model: ModelArg,
}

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

impl AddSecret {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
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

impl UpdateSecret {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
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

impl GrantSecret {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let secret = SecretSelector::from(self.secret.as_str());
        let command = Command::GrantSecret { secret, applications: self.applications };
        context.model(&self.model)?.command(command).await.map(|_| ())
    }
}

impl RevokeSecret {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let secret = SecretSelector::from(self.secret.as_str());
        let command = Command::RevokeSecret { secret, applications: self.applications };
        context.model(&self.model)?.command(command).await.map(|_| ())
    }
}

impl RemoveSecret {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let secret = SecretSelector::from(self.secret.as_str());
        let command = Command::RemoveSecret { secret, revision: self.revision };
        context.model(&self.model)?.command(command).await.map(|_| ())
    }
}
