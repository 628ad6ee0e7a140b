//! `refresh`: another revision of an application's charm.

mod shown;
mod wanted;

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use periapt_client::ClientError;
use periapt_host_api::{
    ApplicationName, ErrorCode, ResourceName, StorageName,
    api::{ApplicationDetails, ResourceDetails},
    command::{Command, RefreshWith},
    imports::Grant,
    refresh::RefreshPlan,
    storage::StorageDirective,
};

use wanted::WantedCharm;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    input,
    output::OutputArgs,
    parse::{base::say_of_base, bindings, settings, storage},
    prompt::PromptArg,
    upload::{
        charm::{Assumptions, Charm},
        resource::{self as resources, ResourceFile},
    },
};

/// Refresh an application's charm
///
/// First the command prints the differences from the present charm: abilities beyond the sandbox, endpoints, storage,
/// options, actions, and settings that would be lost. Units then run upgrade-charm, each between two hooks. Settings,
/// storage, resources and trust change together with the charm. With the present charm nothing else changes.
///
/// A refresh that went wrong is undone by another one: --revision names a charm that the application had before, and a
/// number in place of a resource's file an earlier revision of its content. `show-application` and `resources` list those
/// that are kept: the last four of each. Units in error go back with --force-units, or after `resolved`. Storage stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt refresh wordpress --path ./wordpress.charm
  periapt refresh wordpress --path ./wordpress.charm --dry-run --format yaml
  periapt refresh wordpress --path ./wordpress.charm --config port=8080 --resource theme=./theme.zip
  periapt refresh wordpress --path ./wordpress.charm --force-units
  periapt refresh wordpress --revision 3 --resource theme=2
  periapt refresh web --resource web-image=1 --force-units")]
pub(crate) struct Refresh {
    /// The application
    application: ApplicationName,
    /// The charm: a directory or a .charm file
    #[arg(long, value_name = "CHARM")]
    path: Option<PathBuf>,
    /// A charm that the application had before, by its revision
    #[arg(long, value_name = "REVISION", conflicts_with = "path")]
    revision: Option<u64>,
    /// Also in units whose hook has failed: they are upgraded first, and run the hook again
    #[arg(long)]
    force_units: bool,
    /// The same as --force-units; also if this controller does not meet the new charm's `assumes`
    #[arg(long)]
    force: bool,
    /// Accepted for compatibility with Juju; all charms run on one base
    #[arg(long, hide = true, alias = "force-series")]
    force_base: bool,
    /// Accepted for compatibility with Juju, with a note; all charms run on one base, wasi@0.2
    #[arg(long, hide = true, value_name = "NAME@CHANNEL")]
    base: Option<String>,
    /// Spaces of its endpoints, as `bind` takes them; bound once the application has the charm
    #[arg(long, value_name = "SPACES")]
    bind: Vec<String>,
    /// A setting KEY=VALUE (KEY=@FILE for a file's content), or a YAML file of settings; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    config: Vec<String>,
    /// Storage that new units get: `NAME=[POOL,][COUNT,]SIZE`; may be repeated
    #[arg(long, value_name = "NAME=DIRECTIVE", value_parser = storage::directive)]
    storage: Vec<(StorageName, StorageDirective)>,
    /// Content of a resource, from a file on this machine or by an earlier revision; may be repeated
    #[arg(long, value_name = "NAME=FILE|REVISION", value_parser = resources::argument)]
    resource: Vec<(ResourceName, PathBuf)>,
    /// Trust the application with the abilities that its charm declares
    #[arg(long)]
    trust: bool,
    /// Only print the changes, and the obstacles to them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Refresh {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        say_of_base(context, self.base.as_deref());
        let bindings = bindings::parse(&self.bind)?;
        // A missing application is reported before any other error.
        let before = model.client().application(&model.selector, &self.application).await?;
        let charm = self.wanted(&before)?;
        // Those of the present charm, with the contents that are kept.
        let known = match self.resource.is_empty() {
            true => Vec::new(),
            false => model.client().resources(&model.selector, &self.application).await?,
        };
        let is_file = |(_, place): &&(ResourceName, PathBuf)| resources::revision(place).is_none();
        let files = resources::given(&charm.resources(&known), self.resource.iter().filter(is_file)).await?;
        let with = self.with(&files, &known)?;
        let digest = charm.digest();
        let (force, same) = (self.force || self.force_units, before.charm_digest == digest);
        // The controller reads a charm that an earlier release stored again at an upload, for all applications that use it.
        if !(self.dry_run && same) {
            charm.upload(model.client()).await?;
        }
        match same {
            true => context.say(format_args!(
                "Application \"{}\" is already running charm \"{}\", digest {}",
                self.application,
                before.charm,
                digest.short()
            )),
            false => {
                let plan = model.client().refresh_plan(&model.selector, &self.application, &digest, force);
                let plan = plan.await?;
                self.output.print(context.color, &plan, shown::table)?;
                if let Some(refusal) = plan.refusal {
                    return Err(charm.with_hint_of_force(refusal.into(), Assumptions::of_force(force)));
                }
                if !self.dry_run {
                    self.ask(&plan)?;
                }
            }
        }
        if self.dry_run || (same && !force && with.is_empty() && bindings.is_empty()) {
            return Ok(());
        }
        for file in files.values() {
            file.upload(model.client()).await?;
        }
        let application = self.application.clone();
        let command = Command::Refresh { application, charm: digest, force, with };
        match model.client().command(&model.selector, command).await {
            // A repeated force has nothing left to do.
            Err(ClientError::Refused(refusal)) if same && refusal.code == ErrorCode::AlreadyExists => {}
            done => drop(done?),
        }
        if !bindings.is_empty() {
            model.command(Command::Bind { application: self.application.clone(), bindings }).await?;
        }
        if !same {
            context.say(format_args!(
                "Refreshing \"{}\" from {} to local charm \"{}\", digest {}",
                self.application,
                before.charm,
                charm.name(),
                digest.short()
            ));
        }
        Ok(())
    }
}

impl Refresh {
    /// Collects the settings, storage, resources and trust that change together with the charm.
    fn with(
        &self,
        files: &BTreeMap<ResourceName, ResourceFile>,
        known: &[ResourceDetails],
    ) -> Result<RefreshWith> {
        let config = settings::from_options(&self.config, Some(self.application.as_str()))?;
        let mut uploads: BTreeMap<_, _> =
            files.iter().map(|(name, file)| (name.clone(), file.upload_of())).collect();
        for (name, place) in &self.resource {
            let Some(revision) = resources::revision(place) else { continue };
            if uploads.insert(name.clone(), resources::kept(known, name, revision)?).is_some() {
                return Err(Failure::new(format!("resource \"{name}\" is given twice")));
            }
        }
        Ok(RefreshWith {
            config,
            storage: storage::directives(self.storage.clone())?,
            resources: uploads,
            trust: self.trust,
        })
    }

    /// Returns the charm that the application is to have.
    fn wanted(&self, before: &ApplicationDetails) -> Result<WantedCharm> {
        match (&self.path, self.revision) {
            (Some(path), _) => Ok(WantedCharm::Read(Box::new(Charm::read(path)?))),
            (None, Some(revision)) => WantedCharm::kept(before, revision),
            (None, None) if !self.resource.is_empty() => WantedCharm::kept(before, before.charm_revision),
            (None, None) => Err(no_path()),
        }
    }

    /// Asks the operator before a charm gets new grants. It asks nothing without a terminal: a script consents by its
    /// arguments.
    fn ask(&self, plan: &RefreshPlan) -> Result<()> {
        if !plan.difference.widens_grants() || !input::is_terminal() {
            return Ok(());
        }
        let grants: Vec<_> = plan.difference.grants.added.iter().copied().map(Grant::as_str).collect();
        self.prompt
            .confirm(&format!("The new charm asks for more than the present one: {}.", grants.join(", ")))
    }
}

/// Returns the error of a refresh without a path: there is no store with a newer charm.
fn no_path() -> Failure {
    Failure::new("a charm from a path is refreshed from a path")
        .with_hint("say which charm with --path, or which of the application's former charms with --revision")
}
