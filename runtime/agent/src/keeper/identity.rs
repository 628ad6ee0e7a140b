//! The agent's identity: its key, which never leaves this host, and the certificate that the controller issues for it.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use periapt_client::{Addresses, Backoff, Client, ClientCertificate, ClientError, Identity, Trust};
use periapt_host_api::{
    AgentName, Digest, ErrorCode, Refusal, Timestamp,
    agent::{CertificateRequest, ControllerPlace, IssuedCertificate, JoinText},
    token::Token,
};
use periapt_transport::{
    AgentKey, AgentTls, CertificateError, KeyFileError, Readers, digest_of, read_file, write_file,
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

use super::{addresses::KeptAddresses, controller::HttpController, directories::private_directory};

/// The file of the key.
const KEY: &str = "key.pem";
/// The file of the certificate of the controller's authority.
const AUTHORITY: &str = "authority.pem";
/// The file of the controller to which the agent's models have moved. It counts in the place of the addresses of the
/// command line and of the authority.
const MOVED: &str = "moved.json";

/// The most earlier controllers that an agent remembers, the newest ones.
const MAX_EARLIER: usize = 100;

/// The time within which the controller to which the models have moved must let the agent in. Else it is tried again.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(20);

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
    /// The file of the controller to which the models have moved cannot be used.
    #[error("{}: {source}; remove it and join again", .path.display())]
    Moved {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
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
        if self.moved(token)?.is_none() {
            // A token has let the agent join a controller that it was not with before.
            let path = self.directory.join(MOVED);
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(KeyFileError::File { path, source }.into());
                }
                _ => {}
            }
        }
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
        let moved = self.moved(token)?;
        let (trust, controllers) = match &moved {
            Some((moved, addresses)) => (Trust::Authority(moved.place.authority.clone()), addresses),
            None => (self.trust(token)?, controllers),
        };
        let known = match &trust {
            // The kept addresses are those of the controller that it has joined.
            Trust::Authority(_) => self.kept_addresses().read(),
            _ => None,
        };
        let controllers = known.map_or_else(|| controllers.clone(), |known| controllers.with(&known));
        let options =
            |trust| periapt_client::Options::new(controllers.clone(), Identity::Local).with_trust(trust);
        let joining = Client::new(options(trust))?;
        // A token of a controller that the agent was with before its models moved is of no use now.
        let token = token.filter(|token| {
            let earlier = moved.as_ref().map(|(moved, _)| &moved.earlier_authorities);
            !earlier.is_some_and(|earlier| earlier.contains(&token.authority))
        });
        let issued = self.ask(&joining, token.map(|text| &text.token)).await?;
        self.show(&issued)?;
        let options = options(Trust::Authority(issued.authority.clone()));
        let issuing = Client::new(options.clone())?;
        let client = Client::new(options.with_certificate(self.shown.clone()))?;
        Ok(Joined { client, issuing, issued })
    }

    /// Reads where the agent's models have moved; none if a token lets the agent join a controller that it was not with.
    fn moved(&self, token: Option<&JoinText>) -> Result<Option<(Moved, Addresses)>, IdentityError> {
        let path = self.directory.join(MOVED);
        let Some(text) = read_file(&path, Readers::All)? else { return Ok(None) };
        let moved: Moved = match serde_json::from_str(&text) {
            Ok(moved) => moved,
            Err(source) => return Err(IdentityError::Moved { path, source }),
        };
        let addresses = Addresses::read(&moved.place.addresses).map_err(ClientError::from)?;
        let known = digest_of(&moved.place.authority);
        let known = known.map_err(|source| IdentityError::Unusable { path, source })?;
        let is_elsewhere = token.is_some_and(|token| {
            token.authority != known && !moved.earlier_authorities.contains(&token.authority)
        });
        Ok((!is_elsewhere).then_some((moved, addresses)))
    }

    /// Writes where the agent's models have moved.
    fn write_moved(&self, place: &ControllerPlace) -> Result<(), IdentityError> {
        let mut earlier_authorities = Vec::new();
        if let Some((moved, _)) = self.moved(None)? {
            earlier_authorities = moved.earlier_authorities;
            earlier_authorities.extend(digest_of(&moved.place.authority).ok());
        }
        let own = read_file(&self.directory.join(AUTHORITY), Readers::All)?;
        earlier_authorities.extend(own.and_then(|pem| digest_of(&pem).ok()));
        let next = digest_of(&place.authority).ok();
        let mut seen: BTreeSet<Digest> = next.into_iter().collect();
        earlier_authorities.retain(|digest| seen.insert(*digest));
        earlier_authorities.drain(..earlier_authorities.len().saturating_sub(MAX_EARLIER));
        let path = self.directory.join(MOVED);
        let text = serde_json::to_string_pretty(&Moved { place: place.clone(), earlier_authorities });
        let text = text.map_err(|source| IdentityError::Moved { path: path.clone(), source })?;
        Ok(write_file(&path, &text, Readers::All)?)
    }

    /// Joins the controller to which the agent's models have moved, which knows the agent's key already.
    async fn follow(&self, place: &ControllerPlace) -> Result<Joined, IdentityError> {
        let addresses = Addresses::read(&place.addresses).map_err(ClientError::from)?;
        if !addresses.are_over_tls() {
            return Err(IdentityError::WithoutTls(addresses.to_string()));
        }
        let options = periapt_client::Options::new(addresses, Identity::Local)
            .with_trust(Trust::Authority(place.authority.clone()));
        let issuing = Client::new(options.clone())?;
        let issued = self.ask(&issuing, None).await?;
        self.write_moved(place)?;
        self.show(&issued)?;
        let client = Client::new(options.with_certificate(self.shown.clone()))?;
        Ok(Joined { client, issuing, issued })
    }

    /// Returns the means by which the agent and others know each other. They stay right while [`Self::renew`] runs.
    pub(crate) fn agent_tls(&self, joined: &Joined) -> Result<AgentTls, IdentityError> {
        let unusable = |source| IdentityError::Unusable { path: self.directory.join(AUTHORITY), source };
        AgentTls::new(self.shown.clone(), &joined.issued.authority).map_err(unusable)
    }

    /// Renews the certificate after half of its validity, and after each notice that the controller has refused the
    /// agent. Follows the agent's models to another controller. Ends when the controller does not know the agent any more.
    pub(crate) async fn renew(
        &self,
        joined: Joined,
        refused: &Notify,
        controller: &HttpController,
        agents: &AgentTls,
    ) -> IdentityError {
        let Joined { mut client, mut issuing, mut issued } = joined;
        let mut since = Instant::now();
        let mut place = controller.place();
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
                told = told(&mut place) => {
                    let followed = async {
                        let joined = self.follow(&told).await?;
                        controller.follow(joined.client.clone()).await?;
                        Ok::<_, IdentityError>(joined)
                    };
                    match tokio::time::timeout(FOLLOWS_WITHIN, followed).await {
                        Ok(Ok(joined)) => {
                            tracing::info!(to = ?told.addresses, "the agent's models have moved, and it follows");
                            (client, issuing, issued) = (joined.client, joined.issuing, joined.issued);
                            since = Instant::now();
                            if let Err(error) = agents.trust(&issued.authority) {
                                tracing::warn!(%error, "units on other hosts cannot be reached");
                            }
                        }
                        Ok(Err(error)) => {
                            tracing::warn!(to = ?told.addresses, %error, "the agent cannot follow its models yet");
                            sleep(AFTER_REFUSAL).await;
                        }
                        Err(_) => {
                            tracing::warn!(to = ?told.addresses, "the controller of the agent's models does not answer");
                        }
                    }
                    continue;
                }
            };
            issuing.learn(client.urls());
            let renewed = self.ask(&issuing, None).await;
            match renewed.and_then(|renewed| self.show(&renewed).map(|()| renewed)) {
                Ok(renewed) => {
                    tracing::info!(until = %renewed.expires_at, "renewed the agent's certificate");
                    (issued, since) = (renewed, Instant::now());
                    client.reconnect();
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

/// The controller to which the models of an agent have moved, and those before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Moved {
    place: ControllerPlace,
    /// The digests of the authorities of the controllers that the agent was with, the newest last: their tokens let it join no
    /// more.
    earlier_authorities: Vec<Digest>,
}

/// Waits until the agent is told where its models have moved.
async fn told(place: &mut watch::Receiver<Option<ControllerPlace>>) -> ControllerPlace {
    loop {
        let told = place.borrow_and_update().clone();
        match told {
            Some(told) => return told,
            None => {
                // The sender lives as long as the controller's interface.
                if place.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        }
    }
}
