//! `remove-unit`

use clap::Args;
use periapt_host_api::{ApplicationName, UnitName, command::Command, status::PlacedUnit};

use super::removed_entities::{is_gone, list, units_below};
use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    follow::removal::tell_of_stuck,
    parse::ParseError,
    parse::removal::{DestroyStorageArg, DryRunArg, ForceArgs},
    print::removal::report_one,
    prompt::PromptArg,
};

/// Remove units; each runs its stop and remove hooks first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt remove-unit wordpress/2 wordpress/3 --no-prompt\n  periapt remove-unit wordpress --num-units 2"
)]
pub(crate) struct RemoveUnit {
    /// The units; or one application, with --num-units
    #[arg(value_name = "UNIT|APPLICATION", required = true, value_parser = unit_or_application)]
    units: Vec<String>,
    /// The number of an application's units to remove, those with the highest numbers
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    num_units: Option<u32>,
    #[command(flatten)]
    dry_run: DryRunArg,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    storage: DestroyStorageArg,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for RemoveUnit {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let units = match self.num_units {
            Some(count) => self.last_units(&model, count).await?,
            None => self.units.iter().map(|unit| named(unit)).collect::<Result<_>>()?,
        };
        if self.dry_run.dry_run {
            let mut removed = Vec::new();
            for unit in &units {
                let details = model.client().unit(&model.selector, unit).await?;
                removed.push((unit.to_string(), units_below(&details.subordinates)));
            }
            return DryRunArg::print_plan(
                context,
                "unit",
                removed.iter().map(|(it, below)| (it.as_str(), below.clone())),
            );
        }
        self.prompt.confirm(&format!("This command will remove unit(s) {}.", list(&units)))?;
        let (force, storage) = (self.force.force(), self.storage.storage());
        let commands =
            units.iter().map(|unit| Command::RemoveUnit { unit: unit.clone(), force, storage }).collect();
        let mut left = false;
        let done = model.commands(commands, |index, answer| {
            left |= !is_gone(&answer);
            report_one(context, "unit", &units, index, &answer);
        });
        done.await?;
        if left && force.is_none() {
            let status = model.client().status(&model.selector).await?;
            let ours = |unit: &PlacedUnit<'_>| units.iter().any(|ours| ours.to_string() == unit.name);
            tell_of_stuck(context, &status, ours, "remove-unit", &units);
        }
        Ok(())
    }
}

impl RemoveUnit {
    /// Returns an application's units with the highest numbers, except dying ones.
    async fn last_units(&self, model: &Model, count: u32) -> Result<Vec<UnitName>> {
        let [application] = self.units.as_slice() else {
            return Err(Failure::new("--num-units takes one application")
                .with_hint("units that are named are removed without it"));
        };
        let name = ApplicationName::new(application)?;
        let status = model.client().status(&model.selector).await?;
        let application = status
            .applications
            .get(name.as_str())
            .ok_or_else(|| Failure::new(format!("application \"{name}\" not found")))?;
        let alive = application.units.iter().filter(|(_, unit)| unit.life.is_empty());
        let mut units = alive.map(|(unit, _)| unit.parse()).collect::<Result<Vec<UnitName>, _>>()?;
        units.sort_by_key(|unit| std::cmp::Reverse(unit.number()));
        if (units.len() as u64) < u64::from(count) {
            return Err(Failure::new(format!(
                "application \"{name}\" has {} unit(s), not {count}",
                units.len()
            )));
        }
        units.truncate(count as usize);
        Ok(units)
    }
}

/// Checks that a text is a unit's or an application's name, and returns it.
fn unit_or_application(text: &str) -> Result<String, ParseError> {
    let is_name = text.parse::<UnitName>().is_ok() || ApplicationName::new(text).is_ok();
    let wrong = || ParseError::form("write it as mysql/0, or mysql with --num-units");
    is_name.then(|| text.to_owned()).ok_or_else(wrong)
}

/// Parses a unit's name. An application's name is refused.
fn named(text: &str) -> Result<UnitName> {
    text.parse::<UnitName>().map_err(|error| match ApplicationName::new(text) {
        Ok(_) => Failure::new(format!("\"{text}\" is an application, not a unit"))
            .with_hint(format!("name its units, or say how many with --num-units; `periapt remove-application {text}` removes all of it")),
        Err(_) => error.into(),
    })
}
