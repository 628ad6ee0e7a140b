//! `resolved`: resolves failed hooks.

use clap::Args;
use periapt_host_api::{
    UnitName,
    command::{Command, ResolveMode},
    status::FullStatus,
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Mark failed hooks as resolved
///
/// The hook is run again, or, with --no-retry, taken as done.
#[derive(Debug, Args)]
#[command(visible_alias = "resolve")]
#[command(
    after_help = "Examples:\n  periapt resolved wordpress/0\n  periapt resolved wordpress/0 --no-retry\n  periapt resolved --all"
)]
pub(crate) struct Resolved {
    /// The units
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    units: Vec<UnitName>,
    /// Skip the hook, and treat it as done
    #[arg(long)]
    no_retry: bool,
    /// All units of the model whose hook has failed
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Resolved {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let units = match self.all {
            true => failed(&model.client().status(&model.selector).await?)?,
            false => self.units,
        };
        if units.is_empty() {
            context.say("no unit's hook has failed");
            return Ok(());
        }
        let mode = if self.no_retry { ResolveMode::NoRetry } else { ResolveMode::Retry };
        let commands = units.iter().map(|unit| Command::Resolve { unit: unit.clone(), mode }).collect();
        model
            .commands(commands, |index, _| {
                if let (true, Some(unit)) = (self.all, units.get(index)) {
                    context.say(format_args!("resolved {unit}"));
                }
            })
            .await
    }
}

/// Returns the units whose workload is in error, subordinates too.
fn failed(status: &FullStatus) -> Result<Vec<UnitName>> {
    let failed = status.units().filter(|unit| unit.unit.workload_status.current == "error");
    failed.map(|unit| Ok(unit.name.parse()?)).collect()
}
