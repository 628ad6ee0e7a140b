//! `deploy` of a bundle: reads it, uploads its charms, and changes what differs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::Engine as _;
use clap::Args;
use periapt_client::Client;
use periapt_host_api::{
    ApplicationName, Digest, MachineId, ResourceName, UnitName,
    bundle::{BY_DIGEST, Bundle, BundleCharm, BundleModel, BundleStep, UnitPlace, plan},
    charm::{CharmMeta, ResourceKind},
    command::{Answer, Command, Deploy, Placement, RefreshWith},
    constraints::Constraints,
    resource::ResourceUpload,
};
use tokio::time::timeout;

use crate::{
    commands::applications::bundle,
    context::{Context, Model},
    error::{Explain as _, Failure, Result, with_source},
    follow::status::StatusFollower,
    input,
    output::note,
    parse::constraints,
    upload::{
        charm::{Charm, PASSES_OVER},
        resource::ResourceFile,
    },
};

/// The operator's permissions, for all applications of a bundle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BundlePermissions {
    /// True to trust the applications for which the bundle has `trust: true`.
    pub(crate) trust: bool,
    /// True to accept charms whose `assumes` this controller does not meet.
    pub(crate) force: bool,
}

/// The file name that makes a directory a bundle.
const FILE: &str = "bundle.yaml";

/// The longest wait for a unit's machine, before another unit is placed beside it.
const ASSIGNMENT: Duration = Duration::from_secs(60);

/// The options of `deploy` that apply to bundles alone.
#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// A bundle to lay over the bundle; may be repeated, later ones win
    #[arg(long, value_name = "FILE", help_heading = "Bundles")]
    pub(crate) overlay: Vec<PathBuf>,
    /// Only print the changes
    #[arg(long, help_heading = "Bundles")]
    pub(crate) dry_run: bool,
    /// Machines of the model that stand for the bundle's: existing (the same numbers), or KEY=NUMBER
    #[arg(long, value_name = "existing|KEY=NUMBER,...", value_delimiter = ',', help_heading = "Bundles")]
    pub(crate) map_machines: Vec<String>,
}

/// Returns the bundle's file, if the path is one.
pub(crate) fn path_of(path: &Path) -> Option<PathBuf> {
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if is_yaml && !path.is_dir() {
        return Some(path.to_owned());
    }
    let inside = path.join(FILE);
    inside.is_file().then_some(inside)
}

/// Changes a model to match a bundle.
pub(crate) async fn deploy(
    context: &Context,
    model: &Model,
    path: &Path,
    args: &BundleArgs,
    asked: BundlePermissions,
) -> Result<()> {
    let bundle = read(path, &args.overlay)?;
    let untrusted = bundle.applications.iter().find(|(_, application)| application.trust && !asked.trust);
    if let Some((name, _)) = untrusted {
        return Err(Failure::new(format!("the bundle asks for application {name} to be trusted"))
            .with_hint("if you consent, deploy it again with --trust"));
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    let charms = charms(model, &bundle, directory).await?;
    let resources = resources(&bundle, &charms, directory).await?;
    let metas: BTreeMap<_, _> = charms
        .iter()
        .map(|(name, charm)| {
            let own = resources.get(name).into_iter().flatten();
            let resources = own.map(|(name, source)| (name.clone(), source.upload_of()));
            (name.clone(), BundleCharm { resources: resources.collect(), ..charm.of_bundle() })
        })
        .collect();
    let there = bundle::read(model).await?;
    let machines = machines(&args.map_machines, &bundle, &there)?;
    let steps = plan(&bundle, &metas, &there, &machines).explain(|| format!("{}", path.display()))?;
    if steps.is_empty() {
        context.say("No changes to apply.");
        return Ok(());
    }
    if !asked.force {
        check_assumed(&steps, &metas)?;
    }
    if args.dry_run {
        context.say("Changes to deploy bundle:");
        steps.iter().for_each(|step| note(format_args!("- {step}")));
        return Ok(());
    }
    for charm in charms.values() {
        if let BundleSource::Local(charm) = charm {
            charm.upload(model.client()).await?;
        }
    }
    for source in resources.values().flat_map(BTreeMap::values) {
        source.upload(model.client(), &steps).await?;
    }
    context.say("Executing changes:");
    let units = there.applications.into_iter().map(|(name, existing)| {
        let names = existing.units.into_iter().map(|(unit, _)| unit);
        (name, names.collect())
    });
    let mut executor = Executor { model, force: asked.force, units: units.collect() };
    for step in steps {
        context.say(format_args!("- {step}"));
        let asked = match &step {
            BundleStep::Deploy { constraints, .. } | BundleStep::Constrain { constraints, .. } => {
                constraints.clone()
            }
            _ => Constraints::default(),
        };
        executor.run(step).await?;
        constraints::tell_of_kept(context, &asked);
    }
    context.say("Deploy of bundle completed.");
    Ok(())
}

/// Refuses a bundle before its first step if the controller would refuse one of its charms: half a bundle is
/// of no use.
fn check_assumed(steps: &[BundleStep], charms: &BTreeMap<ApplicationName, BundleCharm>) -> Result<()> {
    for step in steps {
        let (BundleStep::Deploy { application, .. } | BundleStep::Refresh { application, .. }) = step else {
            continue;
        };
        let assumed = charms.get(application).map_or(Ok(()), |charm| charm.meta.assumes.check());
        assumed
            .explain(|| format!("cannot deploy bundle: cannot deploy application \"{application}\""))
            .map_err(|failure| failure.with_hint(PASSES_OVER))?;
    }
    Ok(())
}

fn read(path: &Path, overlays: &[PathBuf]) -> Result<Bundle> {
    let base = input::regular_text(path)?;
    let overlays = overlays.iter().map(|path| input::text(path)).collect::<Result<Vec<_>>>()?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let bundle = Bundle::read(&base, overlays.iter().map(String::as_str), |value| included(directory, value));
    bundle.explain(|| format!("{}", path.display()))
}

/// Returns the content that replaces an option's value that names a file, relative to the bundle's
/// directory.
fn included(directory: &Path, value: &str) -> Result<Option<String>> {
    let read = |file: &str| input::regular_bytes(&directory.join(file), input::MAX_TEXT);
    if let Some(file) = value.strip_prefix("include-file://") {
        let text = String::from_utf8(read(file)?);
        return text.map(Some).map_err(|_| {
            Failure::new(format!("{file} is not UTF-8 text; include-base64:// takes any file"))
        });
    }
    match value.strip_prefix("include-base64://") {
        Some(file) => Ok(Some(base64::engine::general_purpose::STANDARD.encode(read(file)?))),
        None => Ok(None),
    }
}

/// The source of a bundle's charm.
enum BundleSource {
    /// A charm on this machine.
    Local(Charm),
    /// A charm that the controller has.
    Controller(BundleCharm),
}

impl BundleSource {
    fn meta(&self) -> &CharmMeta {
        match self {
            Self::Local(charm) => &charm.inspected.meta,
            Self::Controller(charm) => &charm.meta,
        }
    }

    fn of_bundle(&self) -> BundleCharm {
        match self {
            Self::Local(charm) => BundleCharm {
                digest: charm.inspected.digest,
                meta: charm.inspected.meta.clone(),
                resources: BTreeMap::new(),
            },
            Self::Controller(charm) => charm.clone(),
        }
    }
}

/// Finds all charms of a bundle. It uploads nothing yet.
async fn charms(
    model: &Model,
    bundle: &Bundle,
    directory: &Path,
) -> Result<BTreeMap<ApplicationName, BundleSource>> {
    let mut charms = BTreeMap::new();
    for (name, application) in &bundle.applications {
        let at = || format!("application {name}");
        let charm = match application.charm.strip_prefix(BY_DIGEST) {
            Some(digest) => {
                let digest = digest.parse().map_err(with_source).explain(at)?;
                let archive = model.client().fetch_charm(&digest).await.explain(at)?;
                let inspected = periapt_archive::inspect(&archive).explain(at)?;
                let (meta, resources) = (inspected.meta, BTreeMap::new());
                BundleSource::Controller(BundleCharm { digest, meta, resources })
            }
            None => {
                let path = Path::new(application.charm.strip_prefix("local:").unwrap_or(&application.charm));
                BundleSource::Local(Charm::read(&directory.join(path)).explain(at)?)
            }
        };
        charms.insert(name.clone(), charm);
    }
    Ok(charms)
}

/// The source of a resource's content in a bundle.
enum ResourceSource {
    /// A file on this machine.
    Local(ResourceFile),
    /// Content that the controller has.
    Controller(Digest),
}

impl ResourceSource {
    fn upload_of(&self) -> ResourceUpload {
        match self {
            Self::Local(file) => file.upload_of(),
            Self::Controller(digest) => ResourceUpload { digest: *digest, filename: None, reference: None },
        }
    }

    /// Uploads the content, if a step needs it.
    async fn upload(&self, client: &Client, steps: &[BundleStep]) -> Result<()> {
        let digest = self.upload_of().digest;
        let needs = |step: &BundleStep| match step {
            BundleStep::Deploy { resources, .. } => resources.values().any(|upload| upload.digest == digest),
            BundleStep::Attach { upload, .. } => upload.digest == digest,
            _ => false,
        };
        match self {
            Self::Local(file) if steps.iter().any(needs) => file.upload(client).await,
            Self::Local(_) | Self::Controller(_) => Ok(()),
        }
    }
}

/// Finds all resources of a bundle, by application. It uploads nothing yet.
async fn resources(
    bundle: &Bundle,
    charms: &BTreeMap<ApplicationName, BundleSource>,
    directory: &Path,
) -> Result<BTreeMap<ApplicationName, BTreeMap<ResourceName, ResourceSource>>> {
    let mut all = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (application, body) in &bundle.applications {
        for (name, place) in &body.resources {
            let at = || format!("application {application}: resource {name}");
            let source = match place.strip_prefix(BY_DIGEST) {
                Some(digest) => ResourceSource::Controller(digest.parse().map_err(with_source).explain(at)?),
                None => {
                    let meta = charms.get(application).and_then(|charm| charm.meta().resources.get(name));
                    let kind = meta.map(|meta| &meta.kind);
                    // A name in a registry is no path of the bundle's directory.
                    let path = directory.join(place);
                    let is_name = matches!(kind, Some(ResourceKind::OciImage)) && !path.exists();
                    let path = if is_name && !place.starts_with('.') { place.into() } else { path };
                    let unknown = ResourceKind::File { filename: String::new() };
                    let file = ResourceFile::obtain(kind.unwrap_or(&unknown), &path).await;
                    ResourceSource::Local(file.explain(at)?)
                }
            };
            all.entry(application.clone()).or_default().insert(name.clone(), source);
        }
    }
    Ok(all)
}

/// Returns the model's machine for each machine of the bundle.
fn machines(options: &[String], bundle: &Bundle, model: &BundleModel) -> Result<BTreeMap<String, MachineId>> {
    let used = model.applications.values().flat_map(|application| &application.units);
    let there: Vec<_> = used.filter_map(|(_, machine)| *machine).collect();
    let mut machines = BTreeMap::new();
    for option in options {
        let wrong = || Failure::new(format!("--map-machines {option}: write existing, or KEY=NUMBER"));
        if option == "existing" {
            let same = bundle.machines.iter().filter_map(|key| Some((key.clone(), key.parse().ok()?)));
            machines.extend(same.filter(|(_, machine)| there.contains(machine)));
            continue;
        }
        let (key, machine) = option.split_once('=').ok_or_else(wrong)?;
        if !bundle.machines.iter().any(|known| known == key) {
            return Err(Failure::new(format!("--map-machines {option}: the bundle has no machine {key}")));
        }
        machines.insert(key.to_owned(), machine.parse().map_err(|_| wrong())?);
    }
    Ok(machines)
}

/// The execution of a bundle's steps, in order.
struct Executor<'a> {
    model: &'a Model,
    /// True to accept charms whose `assumes` this controller does not meet.
    force: bool,
    /// The units of each application, by number.
    units: BTreeMap<ApplicationName, Vec<UnitName>>,
}

impl Executor<'_> {
    async fn run(&mut self, step: BundleStep) -> Result<()> {
        let command = match step {
            BundleStep::Deploy {
                application,
                charm,
                options,
                storage,
                bindings,
                constraints,
                trust,
                resources,
            } => Command::Deploy(Deploy {
                charm,
                application: Some(application),
                units: 0,
                config: options,
                placement: Vec::new(),
                storage,
                trust,
                force: self.force,
                bindings,
                resources,
                attach_storage: Vec::new(),
                constraints,
            }),
            BundleStep::Attach { application, resource, upload } => {
                Command::AttachResource { application, resource, upload }
            }
            BundleStep::Refresh { application, charm } => {
                Command::Refresh { application, charm, force: self.force, with: RefreshWith::default() }
            }
            BundleStep::Configure { application, options } => {
                Command::SetConfig { application, set: options, reset: Vec::new() }
            }
            BundleStep::Trust(application) => Command::SetTrust { application, trust: true },
            BundleStep::Bind { application, bindings } => Command::Bind { application, bindings },
            BundleStep::Constrain { application, constraints } => {
                Command::SetConstraints { application, constraints }
            }
            BundleStep::Expose { application, endpoints } => Command::Expose { application, endpoints },
            BundleStep::AddUnits { application, count, place } => {
                let placement = self.placement(place).await?;
                let placement = placement.map_or_else(Vec::new, |one| vec![one; count as usize]);
                Command::AddUnits { application, count, placement, attach_storage: vec![] }
            }
            BundleStep::Offer { application, offer, endpoints } => {
                Command::Offer { application, endpoints, name: Some(offer), description: None }
            }
            BundleStep::Consume { application, offer } => {
                Command::Consume { offer, application: Some(application) }
            }
            BundleStep::Integrate(first, second) => Command::Integrate { first, second, via: Vec::new() },
        };
        if let Answer::Units { units } = self.model.command(command).await? {
            for unit in units {
                self.units.entry(unit.application().clone()).or_default().push(unit);
            }
        }
        Ok(())
    }

    async fn placement(&self, place: UnitPlace) -> Result<Option<Placement>> {
        Ok(match place {
            UnitPlace::New => None,
            UnitPlace::Agent(agent) => Some(Placement::Agent(agent)),
            UnitPlace::Machine(machine) => Some(Placement::Machine(machine)),
            UnitPlace::Beside(application, index) => {
                let unit = self.units.get(&application).and_then(|units| units.get(index));
                let unit = unit
                    .ok_or_else(|| Failure::new(format!("application {application} has no unit {index}")))?;
                Some(Placement::Machine(self.machine_of(unit).await?))
            }
        })
    }

    /// Waits until a unit has a machine, and returns it.
    async fn machine_of(&self, unit: &UnitName) -> Result<MachineId> {
        let mut follow = StatusFollower::new(self.model);
        let waiting = async {
            loop {
                let status = follow.next().await?;
                let application = status.applications.get(unit.application().as_str());
                let shown = application.and_then(|application| application.units.get(&unit.to_string()));
                if let Some(machine) = shown.and_then(|shown| shown.machine.parse().ok()) {
                    return Ok(machine);
                }
            }
        };
        let found = timeout(ASSIGNMENT, waiting).await;
        found.unwrap_or_else(|_| {
            Err(Failure::new(format!("unit {unit} has no machine after {} s", ASSIGNMENT.as_secs()))
                .with_hint("`periapt agents` shows whether there is an agent"))
        })
    }
}
