//! `retry-provisioning`: machines for units that could not be placed.

use clap::Args;
use periapt_host_api::{MachineId, UnitName, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
};

/// Try again to find machines for units that could not be placed
///
/// The controller tries by itself whenever an agent connects or constraints change. A machine is a place on an agent,
/// so nothing of it can fail once a unit has one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt retry-provisioning mysql/3\n  periapt retry-provisioning --all")]
pub(crate) struct RetryProvisioning {
    /// The units; a machine has been provisioned
    #[arg(value_name = "UNIT", required_unless_present = "all", conflicts_with = "all")]
    units: Vec<String>,
    /// All units without a machine
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for RetryProvisioning {
    async fn run(self, context: &Context) -> Result<()> {
        let named = self.units.iter().map(|text| unit(text)).collect::<Result<Vec<_>>>()?;
        let model = context.model(&self.model)?;
        let units = match self.all {
            false => named,
            true => {
                let status = model.client().status(&model.selector).await?;
                let units = status.applications.values().flat_map(|application| &application.units);
                let waiting = units.filter(|(_, unit)| unit.machine.is_empty());
                waiting.map(|(name, _)| unit(name)).collect::<Result<_>>()?
            }
        };
        if units.is_empty() {
            context.say("no unit waits for a machine");
            return Ok(());
        }
        let commands = units.iter().map(|unit| Command::RetryProvisioning { unit: unit.clone() }).collect();
        model
            .commands(commands, |index, _| {
                if let Some(unit) = units.get(index) {
                    context.say(format_args!("retrying to find a machine for {unit}"));
                }
            })
            .await
    }
}

/// Parses a unit's name. Juju's verb takes machines, which are refused.
fn unit(text: &str) -> Result<UnitName> {
    if text.parse::<MachineId>().is_ok() {
        return Err(Failure::new(format!("machine {text} is not in an error state")).with_hint(
            "a machine is a place on an agent; what can fail is to find one: name the unit, or --all",
        ));
    }
    Ok(text.parse()?)
}
