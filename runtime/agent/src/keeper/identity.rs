//! The agent's identity: its key, which never leaves this host, and the certificate that the controller issues for it.

use std::{path::PathBuf, time::Duration};

use periapt_client::{Addresses, Backoff, Client, ClientCertificate, ClientError, Identity, Trust};
use periapt_host_api::{
    AgentName, ErrorCode, Refusal, Timestamp,
    agent::{CertificateRequest, IssuedCertificate, JoinText},
    token::Token,
};
use periapt_transport::{
    AgentKey, CertificateError, KeyFileError, Readers, digest_of, read_file, write_file,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{addresses::KeptAddresses, directories::private_directory};

/// The file of the key.
const KEY: &str = "key.pem";
/// The file of the certificate of the controller's authority.
const AUTHORITY: &str = "authority.pem";

/// The first pause after a controller did not answer, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The interval of checks of the clock, which may have been set or may have stood still with the host.
const CHECKS: Duration = Duration::from_secs(60);

/// The pause after a renewal because of a refused request. A controller that issues certificates and refuses them all
/// the same is asked no faster.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// An error of an agent's identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file of the identity cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The key or a certificate cannot be used.
    #[error("{}: {source}; remove it and join again", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: CertificateError,
    },
    /// The controller's URL is not one over TLS.
    #[error(
        "{0}: an agent reaches its controller over TLS alone, at a URL such as https://node-1.example:17070"
    )]
    WithoutTls(String),
    /// The agent has no way to know its controller.
    #[error(
        "agent {0} has not joined this controller: `periapt agent-token {0}` makes a token there, for --token-file or \
         PERIAPT_AGENT_TOKEN here"
    )]
    NotJoined(AgentName),
    /// The controller knew the agent, and does not any more.
    #[error(
        "the controller does not know agent {0} any more: it was removed, or another agent has joined under its name; \
         `periapt agent-token {0}` makes a token there with which it can join again"
    )]
    Removed(AgentName),
    /// The controller does not let the agent in.
    #[error("the controller does not let agent {agent} join: {refusal}")]
    Refused {
        /// The agent.
        agent: AgentName,
        /// The reason.
        refusal: Refusal,
    },
    /// The controller is not the one that the agent knows.
    #[error(transparent)]
    Controller(#[from] ClientError),
}

/// An agent that has joined.
pub(crate) struct Joined {
    /// A client that shows the agent's certificate.
    pub(crate) client: Client,
    /// A client that shows none, to renew the certificate even after its end.
    issuing: Client,
    issued: IssuedCertificate,
}

/// An agent's key, and the files of its identity.
#[derive(Debug)]
pub(crate) struct AgentIdentity {
    agent: AgentName,
    directory: PathBuf,
    key: AgentKey,
    shown: ClientCertificate,
}

impl AgentIdentity {
    /// Opens an identity, and makes its key if there is none.
    pub(crate) fn open(agent: AgentName, directory: PathBuf) -> Result<Self, IdentityError> {
        private_directory(&directory)
            .map_err(|source| KeyFileError::File { path: directory.clone(), source })?;
        if let Some(existing) = Self::existing(agent.clone(), directory.clone())? {
            return Ok(existing);
        }
        let path = directory.join(KEY);
        let key =
            AgentKey::generate().map_err(|source| IdentityError::Unusable { path: path.clone(), source })?;
        write_file(&path, key.to_pem(), Readers::Owner)?;
        Ok(Self { agent, directory, key, shown: ClientCertificate::default() })
    }

    /// Opens an identity that has a key, and writes nothing.
    pub(crate) fn existing(agent: AgentName, directory: PathBuf) -> Result<Option<Self>, IdentityError> {
        let path = directory.join(KEY);
        let Some(text) = read_file(&path, Readers::Owner)? else { return Ok(None) };
        let key = AgentKey::from_pem(&text).map_err(|source| IdentityError::Unusable { path, source })?;
        Ok(Some(Self { agent, directory, key, shown: ClientCertificate::default() }))
    }

    /// Returns the addresses of the controllers that the agent keeps.
    pub(crate) fn kept_addresses(&self) -> KeptAddresses {
        KeptAddresses::in_directory(self.directory.clone())
    }

    /// Joins the controller with a token, or with the key that the controller knows already. Waits for a controller that
    /// does not answer.
    pub(crate) async fn join(
        &self,
        controllers: &Addresses,
        token: Option<&JoinText>,
    ) -> Result<Joined, IdentityError> {
        let joined = self.certified(controllers, token).await?;
        write_file(&self.directory.join(AUTHORITY), &joined.issued.authority, Readers::All)?;
        Ok(joined)
    }

    /// Gets a certificate as [`Self::join`] does, and writes nothing.
    pub(crate) async fn certified(
        &self,
        controllers: &Addresses,
        token: Option<&JoinText>,
    ) -> Result<Joined, IdentityError> {
        if !controllers.are_over_tls() {
            return Err(IdentityError::WithoutTls(controllers.to_string()));
        }
        let trust = self.trust(token)?;
        let known = match &trust {
            // The kept addresses are those of the controller that it has joined.
            Trust::Authority(_) => self.kept_addresses().read(),
            _ => None,
        };
        let controllers = known.map_or_else(|| controllers.clone(), |known| controllers.with(&known));
        let options =
            |trust| periapt_client::Options::new(controllers.clone(), Identity::Local).with_trust(trust);
        let joining = Client::new(options(trust))?;
        let issued = self.ask(&joining, token.map(|text| &text.token)).await?;
        self.show(&issued)?;
        let options = options(Trust::Authority(issued.authority.clone()));
        let issuing = Client::new(options.clone())?;
        let client = Client::new(options.with_certificate(self.shown.clone()))?;
        Ok(Joined { client, issuing, issued })
    }

    /// Renews the certificate after half of its validity, and after each notice that the controller has refused the
    /// agent. Ends when the controller does not know the agent any more.
    pub(crate) async fn renew(&self, joined: Joined, refused: &Notify) -> IdentityError {
        let Joined { client, issuing, mut issued } = joined;
        let mut since = Instant::now();
        loop {
            let half = issued.expires_at.duration_since(issued.issued_at).unsigned_abs() / 2;
            let is_due = |since: Instant| {
                let passed = Timestamp::now().duration_since(issued.issued_at);
                since.elapsed() >= half || passed.unsigned_abs() >= half
            };
            let pause = tokio::select! {
                () = sleep(CHECKS) => match is_due(since) {
                    true => Duration::ZERO,
                    false => continue,
                },
                () = refused.notified() => AFTER_REFUSAL,
            };
            issuing.learn(client.urls().await).await;
            let renewed = self.ask(&issuing, None).await;
            match renewed.and_then(|renewed| self.show(&renewed).map(|()| renewed)) {
                Ok(renewed) => {
                    tracing::info!(until = %renewed.expires_at, "renewed the agent's certificate");
                    (issued, since) = (renewed, Instant::now());
                    client.reconnect().await;
                }
                Err(IdentityError::NotJoined(agent)) => return IdentityError::Removed(agent),
                Err(error) => tracing::warn!(%error, "the agent's certificate could not be renewed"),
            }
            sleep(pause).await;
        }
    }

    /// Returns the authority that the agent trusts: the token's, or that of the controller that it has joined.
    fn trust(&self, token: Option<&JoinText>) -> Result<Trust, IdentityError> {
        let path = self.directory.join(AUTHORITY);
        let known = match read_file(&path, Readers::All)? {
            Some(pem) => {
                let digest = digest_of(&pem).map_err(|source| IdentityError::Unusable { path, source })?;
                Some((pem, digest))
            }
            None => None,
        };
        match (known, token) {
            (Some((pem, digest)), Some(token)) if digest == token.authority => Ok(Trust::Authority(pem)),
            (_, Some(token)) => Ok(Trust::Digest(token.authority)),
            (Some((pem, _)), None) => Ok(Trust::Authority(pem)),
            (None, None) => Err(IdentityError::NotJoined(self.agent.clone())),
        }
    }

    /// Asks for a certificate until the controller answers.
    async fn ask(&self, client: &Client, token: Option<&Token>) -> Result<IssuedCertificate, IdentityError> {
        let path = || self.directory.join(KEY);
        let request =
            self.key.request().map_err(|source| IdentityError::Unusable { path: path(), source })?;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        // A controller that knows the key needs no token, which may have been used in an earlier attempt.
        let mut with: Option<&Token> = None;
        loop {
            let asked = CertificateRequest { request: request.clone(), token: with.cloned() };
            let refusal = match client.agent_certificate(&self.agent, &asked).await {
                Ok(issued) => return Ok(issued),
                Err(ClientError::Refused(refusal)) if !refusal.code.is_temporary() => refusal,
                Err(error) if error.is_temporary() => {
                    tracing::warn!(%error, "the controller does not answer; trying again");
                    sleep(backoff.failed()).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match token {
                Some(token) if with.is_none() && refusal.code == ErrorCode::NotLoggedIn => with = Some(token),
                None if refusal.code == ErrorCode::NotLoggedIn => {
                    return Err(IdentityError::NotJoined(self.agent.clone()));
                }
                _ => return Err(IdentityError::Refused { agent: self.agent.clone(), refusal }),
            }
        }
    }

    fn show(&self, issued: &IssuedCertificate) -> Result<(), IdentityError> {
        let unusable = |source| IdentityError::Unusable { path: self.directory.join(KEY), source };
        self.shown.set(&issued.certificate, &self.key).map_err(unusable)
    }
}
