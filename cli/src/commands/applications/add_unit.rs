//! `add-unit`

use clap::Args;
use periapt_host_api::{
    ApplicationName, StorageId,
    command::{Answer, Command, Placement},
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    parse::placement,
};

/// Add units to an application
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-unit wordpress\n  periapt add-unit wordpress -n 2 --to agent=worker-1,3\n  \
                  periapt add-unit postgresql --attach-storage pgdata/0"
)]
pub(crate) struct AddUnit {
    /// The application
    application: ApplicationName,
    /// The number of units
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    num_units: u32,
    /// The places of the first ones: a machine's number, or agent=NAME for a new machine there
    #[arg(long, value_name = "PLACE", value_delimiter = ',', value_parser = placement::parse)]
    to: Vec<Placement>,
    /// Detached storage that the unit takes over, with commas between several; it goes where that lies
    #[arg(long, value_name = "STORAGE", value_delimiter = ',')]
    attach_storage: Vec<StorageId>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for AddUnit {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let command = Command::AddUnits {
            application: self.application,
            count: self.num_units,
            placement: self.to,
            attach_storage: self.attach_storage,
        };
        match model.command(command).await? {
            Answer::Units { units } => {
                let units: Vec<_> = units.iter().map(ToString::to_string).collect();
                context.say(format_args!("added {}", units.join(", ")));
                Ok(())
            }
            other => Err(Failure::unexpected(&other)),
        }
    }
}
