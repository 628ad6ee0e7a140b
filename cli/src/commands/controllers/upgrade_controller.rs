//! `upgrade-controller`: has controllers and agents replace their program.

mod rollout;

use std::{collections::BTreeMap, env::consts::ARCH, path::PathBuf, time::Duration};

use clap::Args;
use periapt_host_api::{
    command::{ControllerCommand, ControllerInfo},
    program::ProgramOffer,
};
use periapt_program::{architecture, inspect};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Explain as _, Failure, Result},
    output::OutputArgs,
    parse::duration,
    program,
    upload::resource::ResourceFile,
};

/// Have all controllers and agents replace their program
///
/// Uploads a program of Periapt, by default the one that this client is, and makes it the target. The controllers replace
/// themselves one after the other, the one that leads last, and then each agent. Each tries the program first, and goes back
/// if it does not come up; the rollout then stops, and the command says why. It waits until all controllers run the
/// program. Agents follow by themselves: `periapt agents` shows what each runs.
///
/// The same program again is tried again where it failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt upgrade-controller --dry-run\n  periapt upgrade-controller\n  \
                  periapt upgrade-controller --program ./periapt-0.2.0 --no-wait")]
pub(crate) struct UpgradeController {
    /// The file of the program, if not that of this client
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Check the program and say what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
    /// Return as soon as the program is the target
    #[arg(long)]
    no_wait: bool,
    /// The longest wait; the controllers go on afterwards
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// The program, and what each controller runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listing {
    version: String,
    digest: String,
    level: u32,
    architecture: String,
    /// True if the program is the target.
    is_target: bool,
    /// The programs of the controllers, by their names.
    controllers: BTreeMap<String, String>,
}

impl Listing {
    fn of(offer: &ProgramOffer, info: &ControllerInfo) -> Self {
        let running = rollout::controllers(info).into_iter().map(|(name, program)| {
            let shown = program.map_or_else(|| "unknown".to_owned(), |program| program.to_string());
            (name, shown)
        });
        Self {
            version: offer.version.clone(),
            digest: offer.digest.to_string(),
            level: offer.level.0,
            architecture: offer.architecture.clone(),
            is_target: info.target.as_ref().is_some_and(|target| target.offer.digest == offer.digest),
            controllers: running.collect(),
        }
    }
}

impl Verb for UpgradeController {
    async fn run(self, context: &Context) -> Result<()> {
        let path = self.path();
        let controller = context.controller(self.controller.controller.as_ref())?;
        let before = controller.client.controller().await?;
        let (file, offer) = self.offer(&path, &before).await?;
        if self.dry_run {
            let listing = Listing::of(&offer, &before);
            return self.output.print(context.color, &listing, |listing| {
                format!(
                    "best version:\n    {} ({})\nupgrade to this version by running\n    {} upgrade-controller\n",
                    listing.version,
                    offer.digest.short(),
                    program::name()
                )
            });
        }
        file.upload(&controller.client).await?;
        let command = ControllerCommand::SetProgram(offer.clone());
        controller.client.controller_command(command).await?;
        context.say(format_args!("The controllers take {} ({})", offer.version, offer.digest.short()));
        let after = match self.no_wait {
            true => controller.client.controller().await?,
            false => rollout::finished(context, &controller, &offer, self.timeout).await?,
        };
        self.output.print(context.color, &Listing::of(&offer, &after), shown)
    }
}

impl UpgradeController {
    fn path(&self) -> PathBuf {
        let own = || std::env::current_exe().ok().filter(|path| path.exists());
        self.program.clone().or_else(own).unwrap_or_else(|| program::FILE.into())
    }

    /// Checks the program against this host and the controllers, and reads its file.
    async fn offer(&self, path: &PathBuf, before: &ControllerInfo) -> Result<(ResourceFile, ProgramOffer)> {
        let at = || path.display().to_string();
        let architecture = architecture(path).explain(at)?;
        if architecture != ARCH {
            let text = format!("{} is for {architecture}, and this host is {ARCH}", path.display());
            return Err(Failure::new(text).with_hint("run this command on a host of that architecture"));
        }
        // A relative path without a slash would be looked for in PATH.
        let whole = std::path::absolute(path).explain(at)?;
        let inspected = inspect(&whole).await.map_err(|reason| {
            Failure::new(format!("{} is no program of Periapt that runs here: {reason}", path.display()))
        })?;
        if inspected.level < before.level {
            return Err(Failure::new(format!(
                "{} knows level {} of what controllers store, and controller {} stores level {}",
                path.display(),
                inspected.level,
                before.name,
                before.level
            ))
            .with_hint("choose a newer program: there is no way back from a level"));
        }
        let file = ResourceFile::read(path)?;
        let (version, level) = (inspected.version, inspected.level);
        let digest = file.upload_of().digest;
        Ok((file, ProgramOffer { digest, version, architecture: architecture.to_owned(), level }))
    }
}

/// Returns the lines for people.
fn shown(listing: &Listing) -> String {
    listing.controllers.iter().map(|(name, program)| format!("{name}: {program}\n")).collect()
}
