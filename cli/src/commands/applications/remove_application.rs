//! `remove-application`

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command, status::PlacedUnit};

use super::removed_entities::{is_gone, list, units_below};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    follow::removal::tell_of_stuck,
    parse::removal::{DestroyStorageArg, DryRunArg, ForceArgs},
    print::removal::report_one,
    prompt::PromptArg,
};

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

impl Verb for RemoveApplication {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        if self.dry_run.dry_run {
            let status = model.client().status(&model.selector).await?;
            let mut removed = Vec::new();
            for name in &self.applications {
                let application = status.applications.get(name.as_str());
                let application =
                    application.ok_or_else(|| Failure::new(format!("application \"{name}\" not found")))?;
                let units: Vec<_> = application.units.keys().collect();
                removed.push((name.as_str(), units_below(&units)));
            }
            return DryRunArg::print_plan(context, "application", removed);
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
            report_one(context, "application", names, index, &answer);
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
