//! `clouds`, `show-cloud`, `add-cloud`, `update-cloud`, `remove-cloud`: what Juju's clients say of clouds is kept, by this
//! client or by a controller, and has no effect. Units run on agents.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use periapt_host_api::{
    CloudName, CredentialName,
    cloud::{CloudDefinition, Keep},
    command::ControllerCommand,
    yaml,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    context::Context,
    data::{ClientData, ControllerName},
    error::{Explain as _, Failure, Result, with_source},
    output::{OutputArgs, Table},
};

/// The one cloud that units run in, as statuses call it.
const OWN: &str = "periapt";

/// What stands for it on a command line: statuses' name, and Juju's for the machine that one works on.
pub(crate) const HERE: [&str; 2] = [OWN, "localhost"];

/// Where a cloud or a credential is kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// By this client; so if neither is said
    #[arg(long)]
    client: bool,
    /// By this controller
    #[arg(short, long, value_name = "CONTROLLER")]
    pub(crate) controller: Option<ControllerName>,
}

impl PlaceArgs {
    /// Whether this client is meant, alone or with a controller.
    pub(crate) fn of_client(&self) -> bool {
        self.client || self.controller.is_none()
    }
}

/// List the clouds that are known
///
/// Units run on agents, whatever is kept of other clouds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt clouds\n  periapt clouds --controller staging --format json")]
pub(crate) struct Clouds {
    /// Taken for Juju's sake: all that are known are listed
    #[arg(long, hide = true)]
    all: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show what is known of a cloud
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt show-cloud mystack\n  periapt show-cloud mystack --controller local"
)]
pub(crate) struct ShowCloud {
    /// The cloud
    name: CloudName,
    /// Taken for Juju's sake: no cloud has settings
    #[arg(long, hide = true)]
    include_config: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Keep the definition of a cloud
///
/// For Juju's clients: it is shown and given back, and no unit runs there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-cloud mystack --client --file mystack.yaml\n  periapt add-cloud mystack --controller local --file mystack.yaml"
)]
pub(crate) struct AddCloud {
    /// The cloud
    name: CloudName,
    /// A YAML file with its definition below `clouds`
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
    /// A credential for it, which must be kept already
    #[arg(long, value_name = "NAME")]
    credential: Option<CredentialName>,
    /// Taken for Juju's sake: there are no checks to pass over
    #[arg(long, hide = true)]
    force: bool,
}

/// Change the definition of a cloud that is kept
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt update-cloud mystack --client -f mystack.yaml")]
pub(crate) struct UpdateCloud {
    /// The cloud
    name: CloudName,
    /// A YAML file with its definition below `clouds`
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Forget a cloud, and the credentials for it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-cloud mystack --client")]
pub(crate) struct RemoveCloud {
    /// The cloud
    name: CloudName,
    #[command(flatten)]
    place: PlaceArgs,
}

/// A file of clouds, as Juju reads it.
#[derive(Debug, Deserialize)]
struct File {
    clouds: BTreeMap<CloudName, Map<String, Value>>,
}

/// A cloud with who says so.
struct Known {
    defined: &'static str,
    definition: Map<String, Value>,
}

impl Clouds {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let shown: BTreeMap<_, _> = known(context, &self.place)
            .await?
            .into_iter()
            .map(|(name, cloud)| (name, cloud.shown()))
            .collect();
        self.output.print(context.color, &shown, |shown| {
            let mut table = Table::new(["Cloud", "Regions", "Default", "Type", "Description"]).right(1);
            for (name, cloud) in shown {
                let text = |key: &str| cloud.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                let regions = cloud.get("regions").and_then(Value::as_object);
                let first = regions.and_then(|regions| regions.keys().next().cloned()).unwrap_or_default();
                let count = regions.map_or(0, Map::len);
                table.row([
                    name.as_str().into(),
                    count.to_string().into(),
                    first.into(),
                    text("type").into(),
                    text("description").into(),
                ]);
            }
            table.render()
        })
    }
}

impl ShowCloud {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let cloud = known(context, &self.place).await?.remove(self.name.as_str()).ok_or_else(|| {
            Failure::new(format!("cloud \"{}\" not found", self.name))
                .with_hint("`periapt clouds` lists them")
        })?;
        let mut shown = Map::from_iter([("name".to_owned(), self.name.as_str().into())]);
        shown.extend(cloud.shown());
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}

impl AddCloud {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self { name, file, place, credential, .. } = self;
        let definition = read(&file, &name)?;
        not_own(&name)?;
        if let Some(credential) = credential {
            super::credentials::require(context, &place, &name, &credential).await?;
        }
        if place.of_client() {
            ClientData::update(&context.data, |data| {
                match data.clouds.insert(name.clone(), definition.clone()) {
                    Some(_) => Err(Failure::new(format!("cloud \"{name}\" already exists"))
                        .with_hint(format!("`periapt update-cloud {name} --client` changes it"))),
                    None => Ok(()),
                }
            })?;
            context.say(format_args!("Cloud \"{name}\" added to your local client: kept, and of no effect"));
        }
        if let Some(controller) = &place.controller {
            let command = Keep::AddCloud { name: name.clone(), definition };
            context
                .controller(Some(controller))?
                .client
                .controller_command(ControllerCommand::Keep(command))
                .await?;
            context.say(format_args!(
                "Cloud \"{name}\" added to controller \"{controller}\": kept, and of no effect"
            ));
        }
        Ok(())
    }
}

impl UpdateCloud {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self { name, file, place } = self;
        let definition = read(&file, &name)?;
        if place.of_client() {
            ClientData::update(&context.data, |data| {
                *data.clouds.get_mut(&name).ok_or_else(|| unknown(&name))? = definition.clone();
                Ok(())
            })?;
            context.say(format_args!("Cloud \"{name}\" updated on this client using provided file."));
        }
        if let Some(controller) = &place.controller {
            let command = Keep::UpdateCloud { name: name.clone(), definition };
            context
                .controller(Some(controller))?
                .client
                .controller_command(ControllerCommand::Keep(command))
                .await?;
            context.say(format_args!(
                "Cloud \"{name}\" updated on controller \"{controller}\" using provided file."
            ));
        }
        Ok(())
    }
}

impl RemoveCloud {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let Self { name, place } = self;
        if place.of_client() {
            ClientData::update(&context.data, |data| {
                data.credentials.remove(&name);
                data.clouds.remove(&name).map(drop).ok_or_else(|| unknown(&name))
            })?;
            context.say(format_args!("Removed details of cloud \"{name}\" from this client"));
        }
        if let Some(controller) = &place.controller {
            let command = Keep::RemoveCloud { name: name.clone() };
            context
                .controller(Some(controller))?
                .client
                .controller_command(ControllerCommand::Keep(command))
                .await?;
            context.say(format_args!("Removed details of cloud \"{name}\" from controller \"{controller}\""));
        }
        Ok(())
    }
}

impl Known {
    /// As Juju prints it.
    fn shown(self) -> Map<String, Value> {
        let mut shown = Map::from_iter([("defined".to_owned(), self.defined.into())]);
        shown.extend(self.definition);
        shown
    }
}

/// What is known at a place, and the one cloud that there is.
async fn known(context: &Context, place: &PlaceArgs) -> Result<BTreeMap<String, Known>> {
    let own = json!({
        "type": OWN,
        "description": "Agents, which are processes on hosts of yours",
        "auth-types": ["empty"],
        "regions": {"default": {}},
    });
    let own = Known { defined: "built-in", definition: own.as_object().cloned().unwrap_or_default() };
    let mut clouds = BTreeMap::from([(OWN.to_owned(), own)]);
    let mut add =
        |defined, of_place: BTreeMap<CloudName, CloudDefinition>| {
            clouds.extend(of_place.into_iter().map(|(name, definition)| {
                (name.to_string(), Known { defined, definition: definition.into() })
            }));
        };
    if let Some(controller) = &place.controller {
        add("controller", context.controller(Some(controller))?.client.kept().await?.clouds);
    }
    if place.of_client() {
        add("local", ClientData::read(&context.data)?.clouds);
    }
    Ok(clouds)
}

fn unknown(name: &CloudName) -> Failure {
    Failure::new(format!("cloud \"{name}\" not found")).with_hint("`periapt clouds` lists them")
}

fn not_own(name: &CloudName) -> Result<()> {
    match name.as_str() == OWN {
        true => Err(Failure::new(format!("cloud \"{name}\" is the built-in one"))),
        false => Ok(()),
    }
}

/// The definition of a cloud in a file.
fn read(path: &Path, name: &CloudName) -> Result<CloudDefinition> {
    let at = || format!("{}", path.display());
    let text = fs::read_to_string(path).explain(|| format!("cannot read {}", path.display()))?;
    let mut file: File = yaml::parse(&text).explain(at)?;
    let definition = file.clouds.remove(name).ok_or_else(|| {
        Failure::new(format!("cloud \"{name}\" not found in file {}", path.display()))
            .with_hint("a definition stands below `clouds`, under the cloud's name")
    })?;
    CloudDefinition::new(definition).map_err(with_source).explain(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_found_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("clouds.yaml");
        let name: CloudName = "one".parse().unwrap();
        let refused = |text: &str| {
            fs::write(&path, text).unwrap();
            read(&path, &name).unwrap_err().to_string()
        };
        assert!(refused("clouds: {two: {type: x}}").starts_with("cloud \"one\" not found in file "));
        assert!(refused("clouds: {one: {}}").ends_with("a cloud needs a type, such as openstack"));
        assert!(refused("one: {type: x}").contains("missing field `clouds`"));
        fs::write(&path, "clouds:\n  one: {type: openstack, auth-types: [userpass]}\n").unwrap();
        assert_eq!(read(&path, &name).unwrap().kind(), "openstack");
    }
}
