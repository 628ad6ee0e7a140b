//! `deploy`: an application from a charm, or the applications of a bundle.

mod bundle;

use std::path::PathBuf;

use clap::Args;
use periapt_host_api::{
    ApplicationName, ResourceName, StorageId, StorageName,
    command::{Answer, Command, Deploy as DeployCommand, Placement},
    storage::StorageDirective,
};

use self::bundle::BundleArgs;
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    parse::{base::say_of_base, bindings, constraints, placement, settings, storage},
    upload::{
        charm::{Assumptions, Charm},
        resource as resources,
    },
};

/// Deploy a charm as an application, or a bundle of many
///
/// A charm is a directory with charmcraft.yaml and charm.wasm, or an archive that `periapt pack` made. A bundle is a
/// YAML file, or a directory with bundle.yaml; the same bundle again changes only what differs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt deploy ./mysql
  periapt deploy ./wordpress.charm blog -n 3 --config blog-title=Cats --config port=8080
  periapt deploy ./wordpress.charm --config settings.yaml --to agent=worker-1
  periapt deploy ./mysql --bind 'internal db=public'
  periapt deploy ./proxy --to 3
  periapt deploy ./postgresql --storage pgdata=8G --constraints 'mem=512M tags=ssd'
  periapt deploy ./postgresql --attach-storage pgdata/0
  periapt deploy ./website --resource bundle=./site.tar.gz
  periapt deploy ./web --resource web-image=./image.tar
  periapt deploy ./web --resource web-image=registry.example/web:1
  periapt deploy ./shop.yaml --overlay production.yaml --dry-run")]
pub(crate) struct Deploy {
    /// The charm (a directory or a .charm file) or the bundle (a .yaml file or its directory)
    #[arg(value_name = "CHARM|BUNDLE")]
    charm: PathBuf,
    /// The application's name, if not the charm's
    application: Option<ApplicationName>,
    /// The number of units; a subordinate has none of its own
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    num_units: Option<u32>,
    /// A setting KEY=VALUE (KEY=@FILE for a file's content), or a YAML file of settings; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    config: Vec<String>,
    /// The places of the units: a machine's number, or agent=NAME for a new machine there; commas between several
    #[arg(long, value_name = "PLACE", value_delimiter = ',', value_parser = placement::parse)]
    to: Vec<Placement>,
    /// Storage that each unit gets: `NAME=[POOL,][COUNT,]SIZE`, such as data=2G or logs=3,100M; may be repeated
    #[arg(long, value_name = "NAME=DIRECTIVE", value_parser = storage::directive)]
    storage: Vec<(StorageName, StorageDirective)>,
    /// Detached storage that its one unit takes over, with commas between several; the unit goes where that lies
    #[arg(long, value_name = "STORAGE", value_delimiter = ',')]
    attach_storage: Vec<StorageId>,
    /// Constraints on the agents of its units, and the memory of its hooks: "mem=512M tags=ssd"; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    /// Spaces of its endpoints: "SPACE ENDPOINT=SPACE ...", the first for all that are not named
    #[arg(long, value_name = "SPACES")]
    bind: Vec<String>,
    /// The first content of a resource, from a file on this machine; may be repeated. An image is an archive or directory of
    /// an OCI layout, what `docker save` writes, the name of one in a registry, or a YAML file with registrypath, username
    /// and password
    #[arg(long, value_name = "NAME=FILE", value_parser = resources::argument)]
    resource: Vec<(ResourceName, PathBuf)>,
    /// Trust the application with the abilities that its charm declares
    #[arg(long)]
    trust: bool,
    /// Accepted for compatibility with Juju, with a note; all charms run on one base, wasi@0.2
    #[arg(long, hide = true, value_name = "NAME@CHANNEL")]
    base: Option<String>,
    /// Also if this controller does not meet the charm's `assumes`
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    bundle: BundleArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Deploy {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        say_of_base(context, self.base.as_deref());
        if let Some(path) = bundle::path_of(&self.charm) {
            self.only_of_bundles()?;
            let asked = bundle::BundlePermissions { trust: self.trust, force: self.force };
            return bundle::deploy(context, &model, &path, &self.bundle, asked).await;
        }
        if !self.bundle.overlay.is_empty() || self.bundle.dry_run || !self.bundle.map_machines.is_empty() {
            return Err(Failure::new("--overlay, --dry-run and --map-machines are for bundles")
                .with_hint(format!("{} is a charm", self.charm.display())));
        }
        let charm = Charm::read(&self.charm)?;
        let meta = &charm.inspected.meta;
        let name = self.application.as_ref().map_or(meta.name.as_str(), ApplicationName::as_str);
        let config = settings::from_options(&self.config, Some(name))?;
        // Invalid settings are refused before the upload.
        for (key, text) in &config {
            meta.setting(key, text).map_err(|error| Failure::new(error.to_string()))?;
        }
        let files = resources::given(&meta.resources, &self.resource).await?;
        let constraints = constraints::read(&self.constraints)?;
        let storage = storage::directives(self.storage)?;
        let bindings = bindings::parse(&self.bind)?;
        let digest = charm.upload(model.client()).await?;
        for file in files.values() {
            file.upload(model.client()).await?;
        }
        let told =
            format!("Deploying \"{name}\" from local charm \"{}\", digest {}", meta.name, digest.short());
        let units = self.num_units.unwrap_or(if meta.subordinate { 0 } else { 1 });
        let command = DeployCommand {
            charm: digest,
            application: self.application,
            units,
            config,
            placement: self.to,
            storage,
            trust: self.trust,
            force: self.force,
            bindings,
            resources: files.iter().map(|(name, file)| (name.clone(), file.upload_of())).collect(),
            attach_storage: self.attach_storage,
            constraints: constraints.clone(),
        };
        let done = model.command(Command::Deploy(command)).await;
        let done =
            done.map_err(|failure| charm.with_hint_of_force(failure, Assumptions::of_force(self.force)))?;
        let units: Vec<_> = match done {
            Answer::Application { units, .. } => units.iter().map(ToString::to_string).collect(),
            other => return Err(Failure::unexpected(&other)),
        };
        // Messages come only after the deployment.
        context.say(told);
        constraints::tell_of_kept(context, &constraints);
        if !units.is_empty() {
            context.say(format_args!("Added {}", units.join(", ")));
        }
        Ok(())
    }
}

impl Deploy {
    /// Refuses options of a single application, which a bundle sets itself.
    fn only_of_bundles(&self) -> Result<()> {
        let given = self.application.is_some()
            || self.num_units.is_some()
            || !self.storage.is_empty()
            || !self.attach_storage.is_empty()
            || !self.constraints.is_empty()
            || !self.bind.is_empty()
            || !self.resource.is_empty();
        match given || !self.config.is_empty() || !self.to.is_empty() {
            true => Err(Failure::new(
                "a bundle takes no application name, --num-units, --config, --constraints, --bind, --storage, \
                 --attach-storage, --resource or --to",
            )
            .with_hint("write the differences into a file, and pass it with --overlay")),
            false => Ok(()),
        }
    }
}
