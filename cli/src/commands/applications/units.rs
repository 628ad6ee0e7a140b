//! `add-unit`, `remove-unit`, `remove-application`.

use clap::Args;
use periapt_host_api::{
    ApplicationName, StorageId, UnitName,
    command::{Answer, Command, Placement},
    status::PlacedUnit,
};

use super::deploy::placement;
use crate::{
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    parse::removal::{DestroyStorageArg, DryRunArg, ForceArgs, report},
    print::removal::tell_of_stuck,
    prompt::PromptArg,
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
    #[arg(long, value_name = "PLACE", value_delimiter = ',', value_parser = placement)]
    to: Vec<Placement>,
    /// Detached storage that the unit takes over, with commas between several; it goes where that lies
    #[arg(long, value_name = "STORAGE", value_delimiter = ',')]
    attach_storage: Vec<StorageId>,
    #[command(flatten)]
    model: ModelArg,
}

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

/// Remove applications with their units and relations
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-application wordpress --no-prompt")]
pub(crate) struct RemoveApplication {
    /// The applications
    #[arg(required = true)]
    applications: Vec<ApplicationName>,
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

impl AddUnit {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
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

/// Either name, as it was written.
fn unit_or_application(text: &str) -> Result<String, String> {
    let is_name = text.parse::<UnitName>().is_ok() || ApplicationName::new(text).is_ok();
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| "write it as mysql/0, or mysql with --num-units".to_owned())
}

impl RemoveUnit {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let units = match self.num_units {
            Some(count) => self.last_units(&model, count).await?,
            None => self.units.iter().map(|unit| named(unit)).collect::<Result<_>>()?,
        };
        if self.dry_run.dry_run {
            let mut doomed = Vec::new();
            for unit in &units {
                let details = model.client().unit(&model.selector, unit).await?;
                doomed.push((unit.to_string(), units_below(&details.subordinates)));
            }
            return DryRunArg::tell(
                context,
                "unit",
                doomed.iter().map(|(it, below)| (it.as_str(), below.clone())),
            );
        }
        self.prompt.confirm(&format!("This command will remove unit(s) {}.", list(&units)))?;
        let (force, storage) = (self.force.force(), self.storage.storage());
        let commands =
            units.iter().map(|unit| Command::RemoveUnit { unit: unit.clone(), force, storage }).collect();
        let mut left = false;
        let done = model.commands(commands, |index, answer| {
            left |= !is_gone(&answer);
            said(context, "unit", &units, index, &answer);
        });
        done.await?;
        if left && force.is_none() {
            let status = model.client().status(&model.selector).await?;
            let ours = |unit: &PlacedUnit<'_>| units.iter().any(|ours| ours.to_string() == unit.name);
            tell_of_stuck(context, &status, ours, "remove-unit", &units);
        }
        Ok(())
    }

    /// An application's units with the highest numbers, of those that are not on their way out already.
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

/// A unit by its name; an application alone names none.
fn named(text: &str) -> Result<UnitName> {
    text.parse::<UnitName>().map_err(|error| match ApplicationName::new(text) {
        Ok(_) => Failure::new(format!("\"{text}\" is an application, not a unit"))
            .with_hint(format!("name its units, or say how many with --num-units; `periapt remove-application {text}` removes all of it")),
        Err(_) => error.into(),
    })
}

impl RemoveApplication {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        if self.dry_run.dry_run {
            let status = model.client().status(&model.selector).await?;
            let mut doomed = Vec::new();
            for name in &self.applications {
                let application = status.applications.get(name.as_str());
                let application =
                    application.ok_or_else(|| Failure::new(format!("application \"{name}\" not found")))?;
                let units: Vec<_> = application.units.keys().collect();
                doomed.push((name.as_str(), units_below(&units)));
            }
            return DryRunArg::tell(context, "application", doomed);
        }
        self.prompt.confirm(&format!(
            "This command will remove application(s) {} with all their units and relations.",
            list(&self.applications)
        ))?;
        let (force, storage) = (self.force.force(), self.storage.storage());
        let command = |application: &ApplicationName| Command::RemoveApplication {
            application: application.clone(),
            force,
            storage,
        };
        let commands = self.applications.iter().map(command).collect();
        let (names, mut left) = (&self.applications, false);
        let done = model.commands(commands, |index, answer| {
            left |= !is_gone(&answer);
            said(context, "application", names, index, &answer);
        });
        done.await?;
        if left && force.is_none() {
            let status = model.client().status(&model.selector).await?;
            let ours = |unit: &PlacedUnit<'_>| names.iter().any(|name| name.as_str() == unit.application());
            tell_of_stuck(context, &status, ours, "remove-application", names);
        }
        Ok(())
    }
}

fn units_below<T: ToString>(units: &[T]) -> Vec<String> {
    units.iter().map(|unit| format!("unit {}", unit.to_string())).collect()
}

fn list<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether what was removed is gone already.
fn is_gone(answer: &Answer) -> bool {
    matches!(answer, Answer::Removal { gone: true, .. })
}

/// Reports the answer about one of several things.
pub(crate) fn said<T: ToString>(context: &Context, kind: &str, names: &[T], index: usize, answer: &Answer) {
    if let Some(name) = names.get(index) {
        report(context, &format!("{kind} {}", name.to_string()), answer);
    }
}
