//! `credentials`, `add-credential`, `remove-credential`: stored for Juju's clients, without effect. A controller stores
//! a credential's name and type; the secret parts stay with this client.

mod shown;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::Args;
use periapt_host_api::{CloudName, CredentialName, cloud::CloudChange, command::ControllerCommand, yaml};
use serde::Deserialize;

use self::shown::{Listing, OfCloud, ShownCredential};
use super::place::PlaceArgs;
use crate::{
    commands::Verb,
    context::Context,
    data::{ClientData, Credential},
    error::{Explain as _, Failure, Result},
    input,
    output::OutputArgs,
    parse::credential::unknown,
    parse::settings,
};

/// List credentials for clouds
#[derive(Debug, Args)]
#[command(visible_alias = "list-credentials")]
#[command(
    after_help = "Examples:\n  periapt credentials\n  periapt credentials aws --show-secrets --format json"
)]
pub(crate) struct Credentials {
    /// Only those for this cloud
    cloud: Option<CloudName>,
    /// Show their secret parts, too
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a stored credential
///
/// All of them, if none is named.
#[derive(Debug, Args)]
#[command(visible_alias = "show-credentials")]
#[command(after_help = "Example:\n  periapt show-credential aws mine --client --show-secrets")]
pub(crate) struct ShowCredential {
    /// The cloud
    cloud: Option<CloudName>,
    /// The credential
    #[arg(value_name = "NAME")]
    name: Option<CredentialName>,
    /// Show its secret parts, too
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Store credentials for a cloud
///
/// For Juju's clients: they are stored without effect. A controller stores their names and auth types.
#[derive(Debug, Args)]
#[command(
    visible_aliases = ["update-credential", "update-credentials"],
    after_help = "Example:\n  periapt add-credential aws --client --file credentials.yaml"
)]
pub(crate) struct AddCredential {
    /// The cloud; by default all clouds of the file
    cloud: Option<CloudName>,
    /// A credential of the file; by default all of them
    #[arg(value_name = "NAME")]
    name: Option<CredentialName>,
    /// A YAML file with them below `credentials`
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
    /// Accepted for compatibility with Juju; there are no regions to choose from
    #[arg(long, hide = true)]
    region: Option<String>,
    /// Accepted for compatibility with Juju; there are no checks to skip
    #[arg(long, hide = true)]
    force: bool,
}

/// Remove a stored credential
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-credential aws mine --client")]
pub(crate) struct RemoveCredential {
    /// The cloud
    cloud: CloudName,
    /// The credential
    #[arg(value_name = "NAME")]
    name: CredentialName,
    /// Accepted for compatibility with Juju; no model uses the credential
    #[arg(long, hide = true)]
    force: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Visibility of the secret parts of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Shown,
    LeftOut,
}

impl Secrets {
    /// Converts `--show-secrets`.
    fn of_flag(shown: bool) -> Self {
        if shown { Self::Shown } else { Self::LeftOut }
    }
}

/// A file of credentials, in Juju's form: by cloud and name, with settings of the cloud that have no effect.
#[derive(Debug, Deserialize)]
struct File {
    credentials: BTreeMap<CloudName, BTreeMap<String, serde_json::Value>>,
}

impl Verb for Credentials {
    async fn run(self, context: &Context) -> Result<()> {
        let listing =
            listing(context, &self.place, self.cloud.as_ref(), Secrets::of_flag(self.show_secrets)).await?;
        self.output.print(context.color, &listing, Listing::table)
    }
}

impl Verb for ShowCredential {
    async fn run(self, context: &Context) -> Result<()> {
        let mut listing =
            listing(context, &self.place, self.cloud.as_ref(), Secrets::of_flag(self.show_secrets)).await?;
        if let (Some(cloud), Some(name)) = (&self.cloud, &self.name) {
            listing.retain(name);
            if listing.is_empty() {
                return Err(unknown(cloud, name));
            }
        }
        self.output.or_yaml().print(context.color, &listing.in_detail(), |_| String::new())
    }
}

/// Returns the stored credentials of a place, for one cloud or for all.
async fn listing(
    context: &Context,
    place: &PlaceArgs,
    cloud: Option<&CloudName>,
    secrets: Secrets,
) -> Result<Listing> {
    let wanted = |of: &CloudName| cloud.is_none_or(|wanted| wanted == of);
    let mut listing = Listing::default();
    if place.of_client() {
        let kept = ClientData::read(&context.data)?.credentials;
        for (cloud, credentials) in kept.into_iter().filter(|(cloud, _)| wanted(cloud)) {
            let credentials = credentials
                .into_iter()
                .map(|(name, credential)| (name.to_string(), ShownCredential::of(credential, secrets)));
            let of_cloud = OfCloud { cloud_credentials: credentials.collect() };
            listing.client_credentials.insert(cloud.to_string(), of_cloud);
        }
    }
    if let Some(controller) = &place.controller {
        let kept = context.controller(Some(controller))?.client.kept().await?;
        for (cloud, credentials) in kept.credentials.into_iter().filter(|(cloud, _)| wanted(cloud)) {
            let credentials = credentials.into_iter().map(|(name, auth_type)| {
                (name.to_string(), ShownCredential { auth_type, details: BTreeMap::new() })
            });
            let of_cloud = OfCloud { cloud_credentials: credentials.collect() };
            listing.controller_credentials.insert(cloud.to_string(), of_cloud);
        }
    }
    Ok(listing)
}

impl ShownCredential {
    fn of(credential: Credential, secrets: Secrets) -> Self {
        let mut details = credential.attributes;
        details.retain(|key, _| secrets == Secrets::Shown || PUBLIC.contains(&key.as_str()));
        Self { auth_type: credential.auth_type, details }
    }
}

/// The attributes that Juju shows for the clouds that it knows. Others are shown on request alone, because the names of
/// a cloud's secrets are unknown (`pass-phrase`, `maas-oauth`, `Token`).
const PUBLIC: [&str; 24] = [
    "access-key",
    "application-id",
    "application-object-id",
    "client-email",
    "client-id",
    "domain-name",
    "endpoint",
    "fingerprint",
    "managed-identity",
    "managed-subscription-id",
    "project-domain-name",
    "project-id",
    "rbac-id",
    "region",
    "service-account",
    "subscription-id",
    "tenancy",
    "tenant-id",
    "tenant-name",
    "user",
    "user-domain-name",
    "username",
    "version",
    "vmfolder",
];

impl Verb for AddCredential {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { cloud, name, file, place, .. } = self;
        let clouds = match cloud {
            Some(cloud) => vec![cloud],
            None => read_file(&file)?.credentials.into_keys().collect(),
        };
        for cloud in clouds {
            let mut credentials = read(&file, &cloud)?;
            if let Some(name) = &name {
                credentials.retain(|found, _| found == name);
                if credentials.is_empty() {
                    return Err(Failure::new(format!(
                        "no credential \"{name}\" for cloud \"{cloud}\" in file {}",
                        file.display()
                    )));
                }
            }
            keep(context, &place, &cloud, credentials).await?;
        }
        Ok(())
    }
}

/// Stores credentials for one cloud at their places.
async fn keep(
    context: &Context,
    place: &PlaceArgs,
    cloud: &CloudName,
    credentials: BTreeMap<CredentialName, Credential>,
) -> Result<()> {
    let names: Vec<_> = credentials.keys().map(ToString::to_string).collect();
    let names = names.join(", ");
    if place.of_client() {
        ClientData::update(&context.data, |data| {
            data.credentials.entry(cloud.clone()).or_default().extend(credentials.clone());
            Ok(())
        })?;
        context.say(format_args!("Credential {names} for cloud \"{cloud}\" kept by this client"));
    }
    if let Some(name) = &place.controller {
        let command = |(name, credential): (CredentialName, Credential)| {
            let auth_type = credential.auth_type;
            CloudChange::AddCredential { cloud: cloud.clone(), name, auth_type }
        };
        let controller = context.controller(Some(name))?;
        for command in credentials.into_iter().map(command) {
            controller.client.controller_command(ControllerCommand::Keep(command)).await?;
        }
        context.say(format_args!(
            "Controller \"{name}\" knows of credential {names} for cloud \"{cloud}\", without its secrets"
        ));
    }
    Ok(())
}

impl Verb for RemoveCredential {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { cloud, name, place, .. } = self;
        if place.of_client() {
            ClientData::update(&context.data, |data| {
                let of_cloud = data.credentials.get_mut(&cloud);
                let removed = of_cloud.and_then(|credentials| credentials.remove(&name));
                data.credentials.retain(|_, credentials| !credentials.is_empty());
                removed.map(drop).ok_or_else(|| unknown(&cloud, &name))
            })?;
        }
        if let Some(controller) = &place.controller {
            let command = CloudChange::RemoveCredential { cloud, name };
            context
                .controller(Some(controller))?
                .client
                .controller_command(ControllerCommand::Keep(command))
                .await?;
        }
        Ok(())
    }
}

fn read_file(path: &Path) -> Result<File> {
    let text = input::text(path)?;
    yaml::parse(&text).explain(|| format!("{}", path.display()))
}

/// Reads the credentials for a cloud from a file.
fn read(path: &Path, cloud: &CloudName) -> Result<BTreeMap<CredentialName, Credential>> {
    let mut file = read_file(path)?;
    let found = file.credentials.remove(cloud).unwrap_or_default();
    let mut credentials = BTreeMap::new();
    // A value that is no mapping is a setting of the cloud: its default region and credential.
    for (name, value) in found.into_iter().filter(|(_, value)| value.is_object()) {
        let name: CredentialName =
            name.parse().map_err(Failure::from).explain(|| format!("{}", path.display()))?;
        let mut attributes = BTreeMap::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            attributes.insert(key.clone(), settings::plain(value));
        }
        let auth_type = attributes.remove("auth-type").ok_or_else(|| {
            Failure::new(format!("{}: credential \"{name}\" has no auth-type", path.display()))
        })?;
        credentials.insert(name, Credential { auth_type, attributes });
    }
    match credentials.is_empty() {
        true => Err(Failure::new(format!("no credentials for cloud \"{cloud}\" in file {}", path.display()))
            .with_hint("write them below `credentials`, under the cloud's name and their own")),
        false => Ok(credentials),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn credentials_are_found_by_their_cloud_and_hide_what_is_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials.yaml");
        let cloud: CloudName = "aws".parse().unwrap();
        let text = "credentials:\n  aws:\n    default-region: x\n    mine: {auth-type: access-key, access-key: a, \
                    secret-key: b, pass-phrase: c, Token: d, maas-oauth: e}\n";
        fs::write(&path, text).unwrap();
        let mut read_back = read(&path, &cloud).unwrap();
        assert_eq!(read_back.len(), 1);
        let mine = read_back.remove(&"mine".parse().unwrap()).unwrap();
        assert_eq!(mine.auth_type, "access-key");
        let keys =
            |secrets| ShownCredential::of(mine.clone(), secrets).details.into_keys().collect::<Vec<_>>();
        assert_eq!(keys(Secrets::LeftOut), ["access-key"]);
        assert_eq!(keys(Secrets::Shown), ["Token", "access-key", "maas-oauth", "pass-phrase", "secret-key"]);
        let error = read(&path, &"gce".parse().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("no credentials for cloud \"gce\" in file "), "{error}");
        fs::write(&path, "credentials: {aws: {mine: {a: b}}}").unwrap();
        assert!(read(&path, &cloud).unwrap_err().to_string().ends_with("has no auth-type"));
    }
}
