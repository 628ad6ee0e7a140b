//! `grant-secret`, `revoke-secret`

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    command::{Command, SecretSelector},
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Grant applications access to a secret of the model's users
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

/// Revoke applications' access to a secret
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

impl Verb for GrantSecret {
    async fn run(self, context: &Context) -> Result<()> {
        let secret = SecretSelector::from(self.secret.as_str());
        let command = Command::GrantSecret { secret, applications: self.applications };
        context.model(&self.model)?.command(command).await.map(|_| ())
    }
}

impl Verb for RevokeSecret {
    async fn run(self, context: &Context) -> Result<()> {
        let secret = SecretSelector::from(self.secret.as_str());
        let command = Command::RevokeSecret { secret, applications: self.applications };
        context.model(&self.model)?.command(command).await.map(|_| ())
    }
}
