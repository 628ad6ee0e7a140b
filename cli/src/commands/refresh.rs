//! `refresh`: another charm for an application.

mod shown;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command, imports::Grant, refresh::RefreshPlan};

use super::charm::Charm;
use crate::{
    context::{Context, ModelArg},
    error::Result,
    output::OutputArgs,
    prompt::PromptArg,
};

/// Give an application another version of its charm
///
/// First it is told what the new charm asks that the present one did not: abilities beyond the sandbox, endpoints,
/// storage, options, actions, and settings that would be lost. Units then run upgrade-charm, each between two hooks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt refresh wordpress --path ./wordpress.charm
  periapt refresh wordpress --path ./wordpress.charm --dry-run --format yaml
  periapt refresh wordpress --path ./wordpress.charm --force-units")]
pub(crate) struct Refresh {
    /// The application
    application: ApplicationName,
    /// The charm: a directory or a .charm file
    #[arg(long, value_name = "CHARM")]
    path: PathBuf,
    /// Also in units whose hook has failed: they are upgraded first, and run the hook again
    #[arg(long, visible_alias = "force")]
    force_units: bool,
    /// Only tell what would change, and what is in the way
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Refresh {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let charm = Charm::read(&self.path)?;
        // Before the archive is on its way: there may be no such application.
        let before = model.client().application(&model.selector, &self.application).await?;
        let digest = charm.upload(model.client()).await?;
        let plan = model
            .client()
            .refresh_plan(&model.selector, &self.application, &digest, self.force_units)
            .await?;
        let same = before.charm_digest == digest;
        match same {
            true => context.say(format_args!(
                "Application \"{}\" has this charm already, digest {}",
                self.application,
                digest.short()
            )),
            false => self.output.print(context.color, &plan, shown::table)?,
        }
        if let Some(refusal) = plan.refusal {
            return Err(refusal.into());
        }
        if self.dry_run {
            return Ok(());
        }
        self.ask(&plan)?;
        let command = Command::Refresh {
            application: self.application.clone(),
            charm: digest,
            force: self.force_units,
        };
        model.command(command).await?;
        if !same {
            context.say(format_args!(
                "Refreshing \"{}\" from {} to local charm \"{}\", digest {}",
                self.application,
                before.charm,
                charm.inspected.meta.name,
                digest.short()
            ));
        }
        Ok(())
    }

    /// Asks a person before a charm gets abilities that the operator has not seen it ask for. A script has said what it
    /// wants by its arguments.
    fn ask(&self, plan: &RefreshPlan) -> Result<()> {
        if !plan.difference.widens_grants() || !io::stdin().is_terminal() {
            return Ok(());
        }
        let grants: Vec<_> = plan.difference.grants.added.iter().copied().map(Grant::as_str).collect();
        self.prompt
            .confirm(&format!("The new charm asks for more than the present one: {}.", grants.join(", ")))
    }
}
