//! `add-storage`

use clap::Args;
use periapt_host_api::{
    StorageName, UnitName,
    command::{Answer, Command},
    storage::StorageDirective,
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    parse::storage::{directive_or_name, directives},
};

/// Give a unit more storage
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-storage postgresql/0 logs\n  periapt add-storage postgresql/0 logs=2,100M"
)]
pub(crate) struct AddStorage {
    /// The unit
    unit: UnitName,
    /// NAME, or `NAME=[POOL,][COUNT,][SIZE]`; one instance unless a count is given
    #[arg(required = true, value_name = "NAME[=DIRECTIVE]", value_parser = directive_or_name)]
    storage: Vec<(StorageName, StorageDirective)>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for AddStorage {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let storage = directives(self.storage)?;
        let command = Command::AddStorage { unit: self.unit.clone(), storage };
        let added = match model.command(command).await? {
            Answer::Storage { storage } => storage,
            other => return Err(Failure::unexpected(&other)),
        };
        for id in added {
            context.say(format_args!("added storage {id} to {}", self.unit));
        }
        Ok(())
    }
}
