//! `remove-storage`

use clap::Args;
use periapt_host_api::{StorageId, command::Command, storage::StorageEnd};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    parse::removal::ForceArgs,
    print::removal::report_one,
    prompt::PromptArg,
};

/// Remove storage with its content
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt remove-storage pgdata/0\n  periapt remove-storage pgdata/0 --no-destroy"
)]
pub(crate) struct RemoveStorage {
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    /// Only forget it: its files stay on the agent's disk
    #[arg(long)]
    no_destroy: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for RemoveStorage {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let names: Vec<_> = self.storage.iter().map(ToString::to_string).collect();
        let end = match self.no_destroy {
            true => StorageEnd::Release,
            false => {
                self.prompt.confirm(&format!(
                    "This command will remove storage {} with all that lies in it.",
                    names.join(", ")
                ))?;
                StorageEnd::Destroy
            }
        };
        let force = self.force.force();
        let remove = |storage: &StorageId| Command::RemoveStorage { storage: storage.clone(), end, force };
        let commands = self.storage.iter().map(remove).collect();
        model
            .commands(commands, |index, answer| report_one(context, "storage", &self.storage, index, &answer))
            .await
    }
}
