//! Connections between agents. Both sides show the certificates by which controllers know them.

use std::{fmt, io, sync::Arc};

use parking_lot::RwLock;
use periapt_host_api::{AgentName, Digest};
use rustls::{
    CertificateError as Invalid, ClientConfig, Error, ServerConfig,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
        danger::ClientCertVerifier,
    },
    sign::CertifiedKey,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::{
    certificate::{AgentCertificate, CertificateError, PeerCertificate, chain},
    client::{ClientCertificate, roots},
    clock::WallClock,
    provider::{VERSIONS, provider},
    verifier::{CertificateJudge, JudgedVerifier},
};

/// The protocol that agents speak to each other: no other server takes such a connection for one of its own.
const PROTOCOL: &[u8] = b"periapt-agent/1";

/// The name that each agent calls the other one by. It is not sent, and agents are known by their certificates alone.
const CALLED: &str = "agent.invalid";

/// A connection between two agents.
pub type AgentTlsStream<S> = TlsStream<S>;

/// The means by which an agent and others of its authority know each other. Clones share them.
#[derive(Clone)]
pub struct AgentTls {
    shown: ClientCertificate,
    trusted: Arc<RwLock<Trusted>>,
}

/// The authority that is trusted.
struct Trusted {
    verifier: Arc<dyn ClientCertVerifier>,
    server: Arc<ServerConfig>,
}

impl fmt::Debug for AgentTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentTls(..)")
    }
}

impl AgentTls {
    /// Creates the means of an agent that shows a certificate and trusts an authority, given as PEM text.
    ///
    /// # Errors
    /// The authority cannot be read.
    pub fn new(shown: ClientCertificate, authority: &str) -> Result<Self, CertificateError> {
        let trusted = Arc::new(RwLock::new(Trusted::new(&shown, authority)?));
        Ok(Self { shown, trusted })
    }

    /// Trusts another authority on connections that are opened from now on.
    ///
    /// # Errors
    /// The authority cannot be read. Then the one before stays.
    pub fn trust(&self, authority: &str) -> Result<(), CertificateError> {
        *self.trusted.write() = Trusted::new(&self.shown, authority)?;
        Ok(())
    }

    /// Takes a connection of another agent, and returns its certificate, which is verified.
    ///
    /// # Errors
    /// The connection fails, or the other side shows no certificate of an agent of the authority.
    pub async fn accept<S>(&self, stream: S) -> io::Result<(AgentTlsStream<S>, AgentCertificate)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = Arc::clone(&self.trusted.read().server);
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let read = shown.map(|certificate| PeerCertificate::read(certificate));
        match read {
            Some(Ok(PeerCertificate::Agent(agent))) => Ok((stream.into(), agent)),
            _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the certificate is no agent's")),
        }
    }

    /// Connects to another agent.
    ///
    /// # Errors
    /// The connection fails, or the other side is not the agent with this name and this key.
    pub async fn connect<S>(&self, stream: S, agent: &AgentName, key: Digest) -> io::Result<AgentTlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let of_authority = Arc::clone(&self.trusted.read().verifier);
        let verifier = OneAgent { of_authority, agent: agent.clone(), key };
        let mut config = ClientConfig::builder_with_details(provider(), Arc::new(WallClock))
            .with_protocol_versions(VERSIONS)
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(JudgedVerifier(verifier)))
            .with_client_cert_resolver(Arc::new(self.shown.clone()));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        let called = ServerName::try_from(CALLED).map_err(io::Error::other)?;
        Ok(TlsConnector::from(Arc::new(config)).connect(called, stream).await?.into())
    }
}

impl Trusted {
    fn new(shown: &ClientCertificate, authority: &str) -> Result<Self, CertificateError> {
        let setup = |error: Error| CertificateError::Setup(error.to_string());
        let roots = roots(chain(authority)?).map_err(setup)?;
        let verifier: Arc<dyn ClientCertVerifier> =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .map_err(|error| CertificateError::Setup(error.to_string()))?;
        let mut server = ServerConfig::builder_with_details(provider(), Arc::new(WallClock))
            .with_protocol_versions(VERSIONS)
            .map_err(setup)?
            .with_client_cert_verifier(Arc::clone(&verifier))
            .with_cert_resolver(Arc::new(ShownToAgents(shown.clone())));
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { verifier, server: Arc::new(server) })
    }
}

/// An agent's own certificate, shown to agents that connect to it.
#[derive(Debug)]
struct ShownToAgents(ClientCertificate);

impl ResolvesServerCert for ShownToAgents {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // Clients of another protocol get no answer, even if they name none.
        let mut offered = hello.alpn()?;
        offered.any(|protocol| protocol == PROTOCOL).then(|| self.0.current()).flatten()
    }
}

/// A judge that accepts one agent. The certificates of agents are made for clients: the side that takes the connection is
/// checked as a client is, and then by its name and key.
#[derive(Debug)]
struct OneAgent {
    of_authority: Arc<dyn ClientCertVerifier>,
    agent: AgentName,
    key: Digest,
}

impl CertificateJudge for OneAgent {
    fn judge(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        self.of_authority.verify_client_cert(shown, intermediates, now)?;
        match PeerCertificate::read(shown) {
            Ok(PeerCertificate::Agent(agent)) if agent.agent == self.agent && agent.key == self.key => Ok(()),
            _ => Err(Invalid::ApplicationVerificationFailure.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use periapt_host_api::Timestamp;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::{AgentKey, Authority};

    fn agent(authority: &Authority, name: &str) -> (AgentTls, Digest) {
        let key = AgentKey::generate().unwrap();
        let request = key.request().unwrap();
        let day = Duration::from_secs(86_400);
        let issued = authority.issue_agent(&request, &name.parse().unwrap(), Timestamp::now(), day).unwrap();
        let shown = ClientCertificate::default();
        shown.set(&issued, &key).unwrap();
        (AgentTls::new(shown, authority.certificate()).unwrap(), key.digest())
    }

    /// Connects two agents; returns the name that the accepting one sees, if both are content.
    async fn meet(from: &AgentTls, to: &AgentTls, called: &str, key: Digest) -> Option<String> {
        let (near, far) = duplex(4 << 10);
        let called = called.parse().unwrap();
        let connects = async {
            let mut stream = from.connect(near, &called, key).await.ok()?;
            stream.write_all(b"ping").await.ok()?;
            stream.shutdown().await.ok()?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.ok()?;
            Some(answer)
        };
        let accepts = async {
            let (mut stream, shown) = to.accept(far).await.ok()?;
            let mut asked = Vec::new();
            stream.read_to_end(&mut asked).await.ok()?;
            // An end of one direction leaves the other one open.
            stream.write_all(&asked).await.ok()?;
            stream.shutdown().await.ok()?;
            Some(shown.agent.to_string())
        };
        let (answer, shown) = tokio::join!(connects, accepts);
        (answer? == b"ping").then_some(shown?)
    }

    #[tokio::test]
    async fn agents_of_one_authority_know_each_other_by_name_and_key() {
        let (authority, elsewhere) = (Authority::generate().unwrap(), Authority::generate().unwrap());
        let ((a, a_key), (b, b_key)) = (agent(&authority, "a"), agent(&authority, "b"));
        assert_eq!(meet(&a, &b, "b", b_key).await.as_deref(), Some("a"));
        assert_eq!(meet(&b, &a, "a", a_key).await.as_deref(), Some("b"));
        assert_eq!(meet(&a, &b, "c", b_key).await, None, "another name");
        assert_eq!(meet(&a, &b, "b", a_key).await, None, "another key");
        let (stranger, stranger_key) = agent(&elsewhere, "b");
        assert_eq!(meet(&a, &stranger, "b", stranger_key).await, None, "of another authority");
        assert_eq!(meet(&stranger, &a, "a", a_key).await, None, "of another authority");
        // Both follow to the other authority.
        let (moved, moved_key) = agent(&elsewhere, "a");
        assert_eq!(meet(&a, &moved, "a", moved_key).await, None);
        a.trust(elsewhere.certificate()).unwrap();
        assert_eq!(meet(&moved, &a, "a", a_key).await, None, "its own certificate is of the first one");
    }

    #[tokio::test]
    async fn controllers_and_clients_without_a_certificate_are_no_agents() {
        let authority = Authority::generate().unwrap();
        let (a, a_key) = agent(&authority, "a");
        let nobody = AgentTls::new(ClientCertificate::default(), authority.certificate()).unwrap();
        assert_eq!(meet(&nobody, &a, "a", a_key).await, None);
        assert_eq!(meet(&a, &nobody, "a", a_key).await, None);
        let (certificate, key) = authority.issue_controller("one", Timestamp::now()).unwrap();
        let shown = ClientCertificate::default();
        shown.set_pem(&certificate, &key).unwrap();
        let controller = AgentTls::new(shown, authority.certificate()).unwrap();
        assert_eq!(meet(&controller, &a, "a", a_key).await, None);
    }
}
