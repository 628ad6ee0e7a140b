//! The controller under attack.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use periapt_client::{Client, ClientCertificate, Identity, Options, Trust};
use periapt_host_api::{
    ModelUuid,
    access::ControllerAccess,
    api::ModelSelector,
    command::{Answer, ControllerCommand},
    password::Password,
    token::Token,
    user::{NewUser, UseRegistration},
};
use periapt_transport::client_config;
use rustls::ClientConfig;

use crate::{Installation, InstallationGuard};

/// A controller of its own on 127.0.0.1, with an honest user and a hostile one.
#[derive(Debug)]
pub struct AttackedController {
    /// The session of the honest user, who administers the model `honest`.
    pub(super) honest: Token,
    /// The session of the hostile user, who administers the model `hostile`.
    pub(super) hostile: Token,
    /// The model of the honest user.
    pub(super) honest_model: ModelUuid,
    /// The model of the hostile user.
    pub(super) hostile_model: ModelUuid,
    pub(super) address: SocketAddr,
    pub(super) config: Arc<ClientConfig>,
    url: String,
    trust: Trust,
    process: u32,
    /// The last byte of the next attacker's address. Each attack comes from a network of its own.
    next_network: AtomicU8,
    _guard: InstallationGuard,
    periapt: Installation,
}

impl AttackedController {
    /// Bootstraps a controller, which ends when the value is dropped.
    pub async fn bootstrapped() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        let guard = InstallationGuard::of(&periapt)?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        let file: serde_json::Value =
            serde_json::from_slice(&fs::read(periapt.path().join("data/client.json"))?)?;
        let entry = file.pointer("/controllers/local").with_context(|| format!("no controller in {file}"))?;
        let text = |name: &str| entry[name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
        let (url, trust) = (text("url")?, Trust::Authority(text("ca-cert")?));
        let address = url.strip_prefix("https://").context("TLS")?.parse()?;
        let config = client_config(&trust, &ClientCertificate::default())?;
        let process = periapt.controller_process("local")?;
        let operator = on_socket(&periapt, Identity::Local)?;
        let (honest, honest_model) = tenant(&operator, &url, &trust, "honest").await?;
        let (hostile, hostile_model) = tenant(&operator, &url, &trust, "hostile").await?;
        Ok(Self {
            honest,
            hostile,
            honest_model,
            hostile_model,
            address,
            config,
            url,
            trust,
            process,
            next_network: AtomicU8::new(2),
            _guard: guard,
            periapt,
        })
    }

    /// Returns a new client over TLS that shows a token.
    pub(super) fn client(&self, token: &Token) -> anyhow::Result<Client> {
        self.stranger(Identity::Token(token.clone()))
    }

    /// Returns a new client over TLS that proves nothing.
    pub(super) fn stranger(&self, identity: Identity) -> anyhow::Result<Client> {
        let options = Options::new(self.url.clone(), identity);
        Ok(Client::new(options.with_trust(self.trust.clone()))?)
    }

    /// Returns the controller's URL over TLS, and its authority.
    pub(super) fn over_tls(&self) -> (&str, &Trust) {
        (&self.url, &self.trust)
    }

    /// Returns a new client on the controller's socket.
    pub(super) fn on_socket(&self, identity: Identity) -> anyhow::Result<Client> {
        on_socket(&self.periapt, identity)
    }

    /// Returns an address for an attacker, of a network that nobody else has used lately.
    pub(super) fn next_network(&self) -> SocketAddr {
        let last = self.next_network.fetch_add(1, Ordering::Relaxed).max(2);
        (Ipv4Addr::new(127, 0, 66, last), 0).into()
    }

    /// Returns a new client over TLS that proves nothing, and does not come again when it is told to wait.
    pub(super) fn impatient(&self) -> anyhow::Result<Client> {
        let options = Options::new(self.url.clone(), Identity::Local).with_trust(self.trust.clone());
        Ok(Client::new(options.with_busy_retry_timeout(Duration::ZERO))?)
    }

    /// Returns a new client over TLS that shows a certificate.
    pub(super) fn showing(&self, certificate: ClientCertificate) -> anyhow::Result<Client> {
        let options = Options::new(self.url.clone(), Identity::Local).with_trust(self.trust.clone());
        Ok(Client::new(options.with_certificate(certificate))?)
    }

    /// Returns the operator on the controller's own host.
    pub(super) fn operator(&self) -> anyhow::Result<Client> {
        self.on_socket(Identity::Local)
    }

    /// Deploys a charm with a unit on an agent into the model of the honest user.
    pub(super) fn deploy_honest(&self, charm: &str, agent: &str) -> anyhow::Result<()> {
        let agent = format!("agent={agent}");
        tokio::task::block_in_place(|| self.periapt.deploy(charm, ["-m", "admin/honest", "--to", &agent]))
    }

    /// Returns the number of entries of a user's refused act in the audit log.
    pub(super) async fn audited(&self, act: &str, user: &str) -> anyhow::Result<usize> {
        let (operator, user) = (self.operator()?, user.parse()?);
        let (mut entries, mut after) = (0, None);
        loop {
            let page = operator.audit(after.as_deref()).await?;
            let requests = page.entries.iter().map(|entry| &entry.request);
            entries += requests.filter(|it| it.act == act && it.user.as_ref() == Some(&user)).count();
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(entries),
            }
        }
    }

    /// Opens a further session of the hostile user.
    pub(super) async fn another_session(&self) -> anyhow::Result<Token> {
        let login = periapt_host_api::user::PasswordLogin {
            user: "hostile".parse()?,
            password: password("hostile")?,
        };
        Ok(self.client(&self.hostile)?.log_in(&login).await?.token)
    }

    /// Returns the controller's resident memory, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<u64> {
        self.status("VmRSS:")
    }

    /// Returns the most of it since [`Self::forget_peak`].
    pub(super) fn peak(&self) -> anyhow::Result<u64> {
        self.status("VmHWM:")
    }

    /// Begins a new peak.
    pub(super) fn forget_peak(&self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.process);
        fs::write(&path, "5").with_context(|| path)
    }

    fn status(&self, line: &str) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.process);
        let status = fs::read_to_string(&path).context("the controller has ended")?;
        let found = status.lines().find_map(|found| found.strip_prefix(line)).context("a line")?;
        let kib: u64 = found.trim().trim_end_matches(" kB").parse()?;
        Ok(kib << 10)
    }
}

fn on_socket(periapt: &Installation, identity: Identity) -> anyhow::Result<Client> {
    let url = format!("unix://{}", periapt.socket("local").display());
    Ok(Client::new(Options::new(url, identity))?)
}

fn password(name: &str) -> anyhow::Result<Password> {
    Ok(Password::try_from(format!("{name}'s password"))?)
}

/// Adds a user with a model of the same name. Returns the user's session.
async fn tenant(
    operator: &Client,
    url: &str,
    trust: &Trust,
    name: &str,
) -> anyhow::Result<(Token, ModelUuid)> {
    let user = NewUser { name: name.parse()?, display_name: String::new() };
    let issued = operator.add_user(&user).await?;
    let over_tls = Client::new(Options::new(url.to_owned(), Identity::Local).with_trust(trust.clone()))?;
    let registration = UseRegistration { token: issued.token, password: password(name)? };
    let session = over_tls.register_user(&registration).await?;
    let added = operator.controller_command(ControllerCommand::add_model(name.parse()?)).await?;
    let Answer::Model { uuid } = added else { anyhow::bail!("{added:?}") };
    let grant = periapt_host_api::command::Command::GrantModel {
        user: name.parse()?,
        access: periapt_host_api::access::ModelAccess::Admin,
    };
    operator.command(&ModelSelector::Uuid(uuid), grant).await?;
    let known = operator.user(&name.parse()?).await?;
    ensure!(known.access == Some(ControllerAccess::Login), "{known:?}");
    Ok((session.token, uuid))
}
