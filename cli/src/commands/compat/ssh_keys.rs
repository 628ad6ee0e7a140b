//! `ssh-keys`, `add-ssh-key`, `remove-ssh-key`: stored for Juju's clients, without effect. A sandbox has no SSH
//! server.

use clap::Args;
use periapt_host_api::{command::Command, ssh_key::SshKey};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::Sink,
};

/// List a model's public SSH keys
#[derive(Debug, Args)]
#[command(
    visible_alias = "list-ssh-keys",
    after_help = "Examples:\n  periapt ssh-keys\n  periapt ssh-keys --full"
)]
pub(crate) struct SshKeys {
    /// Show the keys themselves, not their fingerprints
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    model: ModelArg,
}

/// Store public SSH keys in a model
///
/// For Juju's clients: a sandbox has no SSH server.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  periapt add-ssh-key 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMWk jane@host'"
)]
pub(crate) struct AddSshKey {
    /// The keys, each a line of an authorized_keys file
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

/// Remove public SSH keys from a model
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-ssh-key jane@host")]
pub(crate) struct RemoveSshKey {
    /// The keys, each by its fingerprint, its comment, or its whole text
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for SshKeys {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let keys = model.client().ssh_keys(&model.selector).await?;
        if keys.is_empty() {
            context.say("No keys to display.");
            return Ok(());
        }
        let line = |key: &SshKey| match (self.full, key.comment()) {
            (true, _) => format!("{key}\n"),
            (false, "") => format!("{}\n", key.fingerprint()),
            (false, comment) => format!("{} ({comment})\n", key.fingerprint()),
        };
        let lines: String = keys.iter().map(line).collect();
        let text = format!("Keys used in model: {}\n{lines}", model.selector);
        Sink::new(None, context.color)?.write(&text)
    }
}

impl Verb for AddSshKey {
    async fn run(self, context: &Context) -> Result<()> {
        let keys = self.keys.iter().map(|text| {
            text.parse::<SshKey>().map_err(|error| Failure::new(format!("cannot add key: {error}")))
        });
        let keys: Vec<SshKey> = keys.collect::<Result<_>>()?;
        let model = context.model(&self.model)?;
        model.command(Command::AddSshKeys { keys }).await?;
        context.say("Stored without effect: a sandbox has no shell to log in to");
        Ok(())
    }
}

impl Verb for RemoveSshKey {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        model.command(Command::RemoveSshKeys { keys: self.ids }).await.map(drop)
    }
}
