//! The client's file, `client.json`: read at any time, changed by one process at a time, replaced whole.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::PathBuf,
};

use periapt_controller::CertificateFiles;
use periapt_host_api::{AgentName, CloudName, CredentialName, cloud::CloudDefinition};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ControllerName, CurrentModel, DataDir};
use crate::{
    blobs_args::BlobsArgs,
    error::{Explain as _, Failure, Result},
    issuer::IssuerArgs,
    log_args::LogArgs,
    process::ProcessId,
    workload_args::WorkloadArgs,
};

/// The version of the file's form. A later one is refused rather than misread.
const VERSION: u32 = 1;

/// The content of the client's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClientData {
    version: u32,
    /// The current controller.
    pub(crate) current_controller: Option<ControllerName>,
    /// The controllers, by the names that this client gives them.
    pub(crate) controllers: BTreeMap<ControllerName, ControllerEntry>,
    /// Clouds that Juju's clients defined; without effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) clouds: BTreeMap<CloudName, CloudDefinition>,
    /// Credentials for clouds, by cloud and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) credentials: BTreeMap<CloudName, BTreeMap<CredentialName, Credential>>,
}

/// A credential for a cloud, with its secret parts: only its owner can read the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Credential {
    /// The auth type, such as `userpass`.
    pub(crate) auth_type: String,
    /// The attributes.
    pub(crate) attributes: BTreeMap<String, String>,
}

/// Hides the attributes: debug output may reach logs.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({}, {} attributes)", self.auth_type, self.attributes.len())
    }
}

/// One controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ControllerEntry {
    /// The URL.
    pub(crate) url: String,
    /// The URLs of all controllers of its store, if there are several: first the one that answered last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<String>,
    /// The certificate of the authority that the client trusts, as PEM text; none in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_cert: Option<String>,
    /// The UUID, which never changes.
    pub(crate) uuid: Uuid,
    /// The current model.
    #[serde(default)]
    pub(crate) current_model: Option<CurrentModel>,
    /// The processes, if it was bootstrapped here.
    #[serde(default)]
    pub(crate) local: Option<Local>,
}

impl ControllerEntry {
    /// Returns `HOST:PORT`, the form of an address for Juju's clients.
    pub(crate) fn server(&self) -> &str {
        server(&self.url)
    }

    /// Returns `HOST:PORT` of all controllers that serve the models.
    pub(crate) fn servers(&self) -> Vec<String> {
        match self.addresses.as_slice() {
            [] => vec![self.server().to_owned()],
            addresses => addresses.iter().map(|url| server(url).to_owned()).collect(),
        }
    }
}

/// Returns `HOST:PORT` of a URL.
fn server(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, server)| server).trim_end_matches('/')
}

/// The processes of a controller that was bootstrapped here, as they were last started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Local {
    /// The controller.
    pub(crate) controller: ProcessId,
    /// The address that the controller listens on; none in entries of earlier versions, whose URL has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<SocketAddr>,
    /// The names by which clients on other machines call it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) public_names: Vec<String>,
    /// The files of the certificate that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFiles>,
    /// The issuer at which external users log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<IssuerArgs>,
    /// The log that it shares with other controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogArgs>,
    /// The object store that has its blobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blobs: Option<BlobsArgs>,
    /// This machine's agent, unless it was bootstrapped without one.
    pub(crate) agent: Option<LocalAgent>,
}

/// The files of a certificate that a controller was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TlsFiles {
    /// The certificate, followed by those of its authorities.
    pub(crate) certificate: PathBuf,
    /// Its key.
    pub(crate) key: PathBuf,
}

impl From<CertificateFiles> for TlsFiles {
    fn from(CertificateFiles { certificate, key }: CertificateFiles) -> Self {
        Self { certificate, key }
    }
}

impl From<&TlsFiles> for CertificateFiles {
    fn from(TlsFiles { certificate, key }: &TlsFiles) -> Self {
        Self { certificate: certificate.clone(), key: key.clone() }
    }
}

/// This machine's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LocalAgent {
    /// Its name in the controller.
    pub(crate) name: AgentName,
    /// Its keeper.
    pub(crate) process: ProcessId,
    /// Its options about the software beside units.
    #[serde(default, skip_serializing_if = "WorkloadArgs::are_none")]
    pub(crate) workloads: WorkloadArgs,
}

impl Default for ClientData {
    fn default() -> Self {
        Self {
            version: VERSION,
            current_controller: None,
            controllers: BTreeMap::new(),
            clouds: BTreeMap::new(),
            credentials: BTreeMap::new(),
        }
    }
}

impl ClientData {
    /// Reads the file. Without one the data is empty.
    pub(crate) fn read(directory: &DataDir) -> Result<Self> {
        let path = directory.client_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
        };
        let data: Self = serde_json::from_str(&text).explain(|| format!("{}", path.display()))?;
        if data.version != VERSION {
            return Err(Failure::new(format!(
                "{} was written in form {}; this version reads form {VERSION}",
                path.display(),
                data.version
            )));
        }
        Ok(data)
    }

    /// Calls a function with the data, while no other process can change it.
    pub(crate) fn locked<T>(directory: &DataDir, act: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let lock = lock(directory)?;
        let answer = act(&Self::read(directory)?)?;
        drop(lock);
        Ok(answer)
    }

    /// Changes the data. Changes of several processes follow each other; a failed one changes nothing.
    pub(crate) fn update<T>(directory: &DataDir, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let lock = lock(directory)?;
        let mut data = Self::read(directory)?;
        let answer = change(&mut data)?;
        data.write(directory)?;
        drop(lock);
        Ok(answer)
    }

    fn write(&self, directory: &DataDir) -> Result<()> {
        let path = directory.client_file();
        // A link stays, because the file may lie in a directory that the user manages.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let partial = path.with_extension("json.new");
        let mut text = serde_json::to_string_pretty(self).explain(|| format!("{}", path.display()))?;
        text.push('\n');
        let write = || -> std::io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, &path)
        };
        let written = write();
        if written.is_err() {
            // The file may not exist; the error below is the one to report.
            let _ = fs::remove_file(&partial);
        }
        written.explain(|| format!("cannot write {}", path.display()))
    }
}

/// Takes the lock, which is held until it is dropped. Makes the directory, which only its owner may enter.
pub(super) fn lock(directory: &DataDir) -> Result<File> {
    let path = directory.path();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .explain(|| format!("cannot make {}", path.display()))?;
    let path = directory.lock_file();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .explain(|| format!("cannot open {}", path.display()))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .explain(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> ControllerEntry {
        ControllerEntry {
            url: "https://127.0.0.1:1".into(),
            addresses: vec!["https://127.0.0.1:2".into(), "https://127.0.0.1:1".into()],
            ca_cert: Some("PEM".into()),
            uuid: Uuid::nil(),
            current_model: None,
            local: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_a_failed_change_leaves_it_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = DataDir(temporary.path().join("new"));
        let name: ControllerName = "local".parse().unwrap();
        ClientData::update(&directory, |data| {
            data.controllers.insert(name.clone(), entry());
            Ok(())
        })
        .unwrap();
        let failed = ClientData::update(&directory, |data| {
            data.controllers.clear();
            Err::<(), _>(Failure::new("no"))
        });
        assert!(failed.is_err());
        assert_eq!(ClientData::read(&directory).unwrap().controllers.get(&name), Some(&entry()));
    }

    #[test]
    fn an_entry_of_an_earlier_version_knows_one_address() {
        let text = r#"{"url": "https://node-1:17070/", "uuid": "00000000-0000-0000-0000-000000000000"}"#;
        let earlier: ControllerEntry = serde_json::from_str(text).unwrap();
        assert_eq!((earlier.servers(), earlier.addresses.len()), (vec!["node-1:17070".to_owned()], 0));
        assert_eq!(entry().servers(), ["127.0.0.1:2", "127.0.0.1:1"]);
    }

    #[test]
    fn a_file_of_a_later_version_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = DataDir(temporary.path().to_owned());
        let later = r#"{"version": 2, "current-controller": null, "controllers": {}}"#;
        fs::write(directory.client_file(), later).unwrap();
        let error = ClientData::read(&directory).unwrap_err().to_string();
        assert!(error.ends_with("was written in form 2; this version reads form 1"), "{error}");
    }
}
