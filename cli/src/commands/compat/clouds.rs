//! `clouds`, `show-cloud`, `add-cloud`, `update-cloud`, `remove-cloud`: this client or a controller stores the clouds
//! of Juju's clients, without effect. Units run on agents.

mod shown;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::Args;
use periapt_host_api::{
    CloudName, CredentialName,
    cloud::{CloudChange, CloudDefinition},
    command::ControllerCommand,
    yaml,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::shown::{Cloud, KeptBy, Known};
use super::place::PlaceArgs;
use crate::{
    commands::Verb,
    context::Context,
    data::ClientData,
    error::{Explain as _, Failure, Result, with_source},
    input,
    output::{OutputArgs, Sink},
    parse::credential,
    print::identity::{CLOUD, REGION},
};

/// List clouds
///
/// Units run on agents; other clouds are stored without effect.
#[derive(Debug, Args)]
#[command(visible_alias = "list-clouds")]
#[command(after_help = "Examples:\n  periapt clouds\n  periapt clouds --controller staging --format json")]
pub(crate) struct Clouds {
    /// Accepted for compatibility with Juju; all clouds are always listed
    #[arg(long, hide = true)]
    all: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show the definition of a cloud
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt show-cloud mystack\n  periapt show-cloud mystack --controller local"
)]
pub(crate) struct ShowCloud {
    /// The cloud
    name: CloudName,
    /// Accepted for compatibility with Juju; no cloud has settings
    #[arg(long, hide = true)]
    include_config: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Store the definition of a cloud
///
/// For Juju's clients: it is stored and shown, and no unit runs there.
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
    /// A credential for it, which must be stored already
    #[arg(long, value_name = "NAME")]
    credential: Option<CredentialName>,
    /// Accepted for compatibility with Juju; there are no checks to skip
    #[arg(long, hide = true)]
    force: bool,
}

/// Change the definition of a stored cloud
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

/// Remove a stored cloud, and the credentials for it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-cloud mystack --client")]
pub(crate) struct RemoveCloud {
    /// The cloud
    name: CloudName,
    #[command(flatten)]
    place: PlaceArgs,
}

/// A file of clouds, in Juju's form.
#[derive(Debug, Deserialize)]
struct File {
    clouds: BTreeMap<CloudName, Map<String, Value>>,
}

impl Verb for Clouds {
    async fn run(self, context: &Context) -> Result<()> {
        let known = known(context, &self.place).await?;
        let (controllers, clients) = known.iter().partition(|known| known.place == KeptBy::Controller);
        let table = shown::table(controllers, clients);
        // The controller's definition of a cloud wins over this client's.
        let by_name: BTreeMap<String, Cloud> =
            known.into_iter().rev().map(|known| (known.name, known.cloud)).collect();
        self.output.print(context.color, &by_name, |_| table)
    }
}

impl Verb for ShowCloud {
    async fn run(self, context: &Context) -> Result<()> {
        let mut found = known(context, &self.place).await?;
        found.retain(|known| known.name == self.name.as_str());
        if found.is_empty() {
            return Err(unknown(&self.name));
        }
        let controller = self.place.controller.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = shown::one(self.output.format, found, &controller)?;
        Sink::new(self.output.output.as_deref(), context.color)?.write(&text)
    }
}

impl Verb for AddCloud {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { name, file, place, credential, .. } = self;
        let definition = read(&file, &name)?;
        not_own(&name)?;
        if let Some(credential) = credential {
            credential::require(context, place.controller.as_ref(), &name, &credential).await?;
        }
        if place.of_client() {
            ClientData::update(&context.data, |data| {
                match data.clouds.insert(name.clone(), definition.clone()) {
                    Some(_) => Err(Failure::new(format!("cloud \"{name}\" already exists"))
                        .with_hint(format!("`periapt update-cloud {name} --client` changes it"))),
                    None => Ok(()),
                }
            })?;
            context.say(format_args!("Cloud \"{name}\" added to your local client: stored without effect"));
        }
        if let Some(controller) = &place.controller {
            let command = CloudChange::AddCloud { name: name.clone(), definition };
            context
                .controller(Some(controller))?
                .client
                .controller_command(ControllerCommand::Keep(command))
                .await?;
            context.say(format_args!(
                "Cloud \"{name}\" added to controller \"{controller}\": stored without effect"
            ));
        }
        Ok(())
    }
}

impl Verb for UpdateCloud {
    async fn run(self, context: &Context) -> Result<()> {
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
            let command = CloudChange::UpdateCloud { name: name.clone(), definition };
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

impl Verb for RemoveCloud {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { name, place } = self;
        if place.of_client() {
            ClientData::update(&context.data, |data| {
                data.credentials.remove(&name);
                data.clouds.remove(&name).map(drop).ok_or_else(|| unknown(&name))
            })?;
            context.say(format_args!("Removed details of cloud \"{name}\" from this client"));
        }
        if let Some(controller) = &place.controller {
            let command = CloudChange::RemoveCloud { name: name.clone() };
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

/// Returns the stored clouds of a place, and the built-in one. A controller's come first, if one is named.
async fn known(context: &Context, place: &PlaceArgs) -> Result<Vec<Known>> {
    let mut known = Vec::new();
    if let Some(controller) = &place.controller {
        let kept = context.controller(Some(controller))?.client.kept().await?.clouds;
        known.extend(all(KeptBy::Controller, kept, &BTreeMap::new()));
    }
    if place.of_client() {
        let data = ClientData::read(&context.data)?;
        let counts = data.credentials.iter().map(|(cloud, credentials)| (cloud.clone(), credentials.len()));
        known.extend(all(KeptBy::Client, data.clouds, &counts.collect()));
    }
    Ok(known)
}

/// Returns the clouds of a place, sorted by name.
fn all(
    place: KeptBy,
    kept: BTreeMap<CloudName, CloudDefinition>,
    credentials: &BTreeMap<CloudName, usize>,
) -> Vec<Known> {
    let own = json!({
        "type": CLOUD,
        "description": "Agents, which are processes on hosts of yours",
        "auth-types": ["empty"],
        "regions": {REGION: {}},
    });
    let own = Cloud::new("built-in", own.as_object().cloned().unwrap_or_default());
    let mut clouds = vec![Known { place, name: CLOUD.to_owned(), cloud: own }];
    clouds.extend(kept.into_iter().map(|(name, definition)| {
        let count = credentials.get(&name).copied().unwrap_or_default();
        let cloud = Cloud::new(place.defines(), definition.into()).with_credentials(count);
        Known { place, name: name.to_string(), cloud }
    }));
    clouds.sort_by(|one, other| one.name.cmp(&other.name));
    clouds
}

fn unknown(name: &CloudName) -> Failure {
    Failure::new(format!("cloud \"{name}\" not found")).with_hint("`periapt clouds` lists them")
}

fn not_own(name: &CloudName) -> Result<()> {
    match name.as_str() == CLOUD {
        true => Err(Failure::new(format!("cloud \"{name}\" is the built-in one"))),
        false => Ok(()),
    }
}

/// Reads the definition of a cloud from a file.
fn read(path: &Path, name: &CloudName) -> Result<CloudDefinition> {
    let at = || format!("{}", path.display());
    let text = input::text(path)?;
    let mut file: File = yaml::parse(&text).explain(at)?;
    let definition = file.clouds.remove(name).ok_or_else(|| {
        Failure::new(format!("cloud \"{name}\" not found in file {}", path.display()))
            .with_hint("write a definition below `clouds`, under the cloud's name")
    })?;
    CloudDefinition::new(definition).map_err(with_source).explain(at)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
