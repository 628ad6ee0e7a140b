//! `detach-storage`

use clap::Args;
use periapt_host_api::{
    StorageId,
    command::{Answer, Command},
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    parse::removal::ForceArgs,
    print::removal::report,
};

/// Detach storage from its unit; it stays in the model with its content
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt detach-storage logs/1\n  periapt detach-storage pgdata/0 --force"
)]
pub(crate) struct DetachStorage {
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for DetachStorage {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let force = self.force.force();
        let detach = |storage: &StorageId| Command::DetachStorage { storage: storage.clone(), force };
        let commands = self.storage.iter().map(detach).collect();
        model
            .commands(commands, |index, answer| {
                let Some(id) = self.storage.get(index) else { return };
                match answer {
                    Answer::Removal { gone: true, .. } => report(context, &format!("storage {id}"), &answer),
                    _ => context.say(format_args!("detaching {id}")),
                }
            })
            .await
    }
}
