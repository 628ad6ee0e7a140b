//! `attach-storage`

use clap::Args;
use periapt_host_api::{StorageId, UnitName, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Attach detached storage to a unit of the agent that it lies on
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt attach-storage postgresql/1 pgdata/0")]
pub(crate) struct AttachStorage {
    /// The unit
    unit: UnitName,
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for AttachStorage {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let attach = |storage: &StorageId| Command::AttachStorage {
            unit: self.unit.clone(),
            storage: storage.clone(),
        };
        let commands = self.storage.iter().map(attach).collect();
        model
            .commands(commands, |index, _| {
                if let Some(id) = self.storage.get(index) {
                    context.say(format_args!("attaching {id} to {}", self.unit));
                }
            })
            .await
    }
}
