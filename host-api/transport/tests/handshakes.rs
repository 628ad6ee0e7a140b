//! Handshakes between clients and servers with certificates of their own.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{sync::Arc, time::Duration};

use periapt_host_api::{AgentName, Timestamp};
use periapt_transport::{
    AgentCertificate, AgentKey, Authority, CertificateError, ClientCertificate, GivenCertificate,
    HandshakeError, PeerCertificate, PublicName, ServerCertificate, Trust, bundle_client_config,
    client_config, digest_of, requested_key, server_config, web_client_config,
};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    version::TLS12,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A server at `node-1.example`.
struct Server {
    authority: Authority,
    shown: ServerCertificate,
}

impl Server {
    fn started(issued: Timestamp) -> Self {
        let authority = Authority::generate().unwrap();
        let (certificate, key) = authority.issue_server(&names(), issued).unwrap();
        Self { shown: ServerCertificate::new(&certificate, &key).unwrap(), authority }
    }

    /// Connects a client, and returns the certificate that the server saw of it.
    async fn meet(
        &self,
        trust: &Trust,
        shown: &ClientCertificate,
        called: &'static str,
    ) -> Result<Option<AgentCertificate>, HandshakeError> {
        self.meet_as(client_config(trust, shown).unwrap(), called).await
    }

    async fn meet_as(
        &self,
        client: Arc<ClientConfig>,
        called: &'static str,
    ) -> Result<Option<AgentCertificate>, HandshakeError> {
        let (one, other) = tokio::io::duplex(64 << 10);
        let acceptor = TlsAcceptor::from(server_config(&self.shown, self.authority.certificate()).unwrap());
        let accepting = tokio::spawn(async move {
            let mut stream = acceptor.accept(one).await?;
            stream.write_all(b"welcome").await?;
            stream.shutdown().await?;
            let certificates = stream.get_ref().1.peer_certificates();
            let first = certificates.and_then(|certificates| certificates.first());
            Ok::<_, std::io::Error>(first.map(|first| match PeerCertificate::read(first).unwrap() {
                PeerCertificate::Agent(agent) => agent,
                PeerCertificate::Controller(_) => unreachable!("agents alone connect"),
            }))
        });
        let connector = TlsConnector::from(client);
        let reason = |error| HandshakeError::of(&error).unwrap();
        let mut stream =
            connector.connect(ServerName::try_from(called).unwrap(), other).await.map_err(reason)?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.map_err(reason)?;
        assert_eq!(said, b"welcome");
        Ok(accepting.await.unwrap().unwrap())
    }
}

fn names() -> Vec<PublicName> {
    vec!["node-1.example".parse().unwrap(), "127.0.0.1".parse().unwrap()]
}

fn nobody() -> ClientCertificate {
    ClientCertificate::default()
}

fn agent(authority: &Authority, key: &AgentKey, now: Timestamp) -> ClientCertificate {
    let one = AgentName::new("one").unwrap();
    let certificate = authority.issue_agent(&key.request().unwrap(), &one, now, DAY).unwrap();
    let shown = ClientCertificate::default();
    shown.set(&certificate, key).unwrap();
    shown
}

#[tokio::test]
async fn a_client_knows_its_controller_by_the_authority_and_by_its_digest() {
    let server = Server::started(Timestamp::now());
    let pem = server.authority.certificate().to_owned();
    for trust in [Trust::Digest(digest_of(&pem).unwrap()), Trust::Authority(pem)] {
        for called in ["node-1.example", "127.0.0.1"] {
            assert_eq!(server.meet(&trust, &nobody(), called).await, Ok(None));
        }
        let error = server.meet(&trust, &nobody(), "other.example").await.unwrap_err().to_string();
        assert!(error.starts_with("its certificate is not for other.example, but for"), "{error}");
    }
}

#[tokio::test]
async fn a_controller_with_another_authority_is_refused() {
    let (server, other) = (Server::started(Timestamp::now()), Authority::generate().unwrap());
    let pem = other.certificate().to_owned();
    for trust in [Trust::Digest(digest_of(&pem).unwrap()), Trust::Authority(pem)] {
        let error = server.meet(&trust, &nobody(), "127.0.0.1").await.unwrap_err();
        assert_eq!(error, HandshakeError::OtherAuthority);
    }
}

#[tokio::test]
async fn a_bundle_is_trusted_as_far_as_it_can_be_read() {
    let (server, other) = (Server::started(Timestamp::now()), Authority::generate().unwrap());
    let unreadable = "# text\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\
        -----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n-----BEGIN X\n\u{e9}\n";
    let bundle = |authorities: &[&Authority]| {
        let certificates: String = authorities.iter().map(|authority| authority.certificate()).collect();
        format!("{unreadable}{certificates}{unreadable}-----BEGIN CERTIFICATE-----\nAAAA").into_bytes()
    };
    let trusting = |authorities: &[&Authority]| bundle_client_config(&bundle(authorities)).unwrap();
    assert_eq!(server.meet_as(trusting(&[&other, &server.authority]), "127.0.0.1").await, Ok(None));
    let error = server.meet_as(trusting(&[&other]), "127.0.0.1").await.unwrap_err();
    assert_eq!(error, HandshakeError::OtherAuthority);
    for without in [bundle(&[]), Vec::new(), vec![0; 1_000], b"-----BEGIN CERTIFICATE-----".to_vec()] {
        let refused = bundle_client_config(&without).unwrap_err();
        assert!(matches!(refused, CertificateError::NoCertificate), "{refused}");
    }
}

#[tokio::test]
async fn tls_1_2_is_for_servers_of_strangers_alone() {
    let authority = Authority::generate().unwrap();
    let (certificate, key) = authority.issue_server(&names(), Timestamp::now()).unwrap();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let ring = || Arc::new(rustls::crypto::ring::default_provider());
    let earlier = ServerConfig::builder_with_provider(ring()).with_protocol_versions(&[&TLS12]).unwrap();
    let earlier = earlier.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(earlier));
    let meet = async |client: Arc<ClientConfig>| {
        let (one, other) = tokio::io::duplex(64 << 10);
        let accepting = tokio::spawn(acceptor.accept(one));
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let met = TlsConnector::from(client).connect(name, other).await;
        let met = met.map_err(|error| HandshakeError::of(&error).unwrap());
        assert_eq!(accepting.await.unwrap().is_ok(), met.is_ok());
        met.map(|stream| stream.get_ref().1.protocol_version())
    };
    let pem = authority.certificate().to_owned();
    let met = meet(bundle_client_config(pem.as_bytes()).unwrap()).await;
    assert_eq!(met, Ok(Some(ProtocolVersion::TLSv1_2)));
    let other = Authority::generate().unwrap();
    let met = meet(bundle_client_config(other.certificate().as_bytes()).unwrap()).await;
    assert_eq!(met, Err(HandshakeError::OtherAuthority));
    for client in [web_client_config(Some(&pem)), client_config(&Trust::Authority(pem.clone()), &nobody())] {
        let met = meet(client.unwrap()).await;
        assert!(matches!(met, Err(HandshakeError::Protocol(_))), "{met:?}");
    }

    // Nor does a controller speak it.
    let server = Server::started(Timestamp::now());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.authority.certificate().as_bytes()).unwrap()).unwrap();
    let earlier = ClientConfig::builder_with_provider(ring()).with_protocol_versions(&[&TLS12]).unwrap();
    let earlier = earlier.with_root_certificates(roots).with_no_client_auth();
    let met = server.meet_as(Arc::new(earlier), "127.0.0.1").await;
    assert!(matches!(met, Err(HandshakeError::Protocol(_))), "{met:?}");
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_told_with_the_difference() {
    let met = async |issued: Timestamp| {
        let server = Server::started(issued);
        let trust = Trust::Authority(server.authority.certificate().to_owned());
        server.meet(&trust, &nobody(), "127.0.0.1").await.unwrap_err().to_string()
    };
    let ahead = met(Timestamp::now() + 3 * DAY).await;
    assert!(ahead.starts_with("its certificate becomes valid in 2 days: this machine's clock"), "{ahead}");
    let behind = met(Timestamp::now() - 97 * DAY).await;
    assert!(behind.starts_with("its certificate expired 7 days ago: this machine's clock"), "{behind}");
}

#[tokio::test]
async fn an_agent_is_known_by_the_key_that_it_asked_a_certificate_for() {
    let server = Server::started(Timestamp::now());
    let trust = Trust::Authority(server.authority.certificate().to_owned());
    let key = AgentKey::from_pem(&AgentKey::generate().unwrap().to_pem()).unwrap();
    assert_eq!(requested_key(&key.request().unwrap()).unwrap(), key.digest());

    let shown = agent(&server.authority, &key, Timestamp::now());
    let seen = server.meet(&trust, &shown, "127.0.0.1").await.unwrap().unwrap();
    assert_eq!((seen.agent.as_str(), seen.key), ("one", key.digest()));
    assert!(seen.until <= Timestamp::now() + DAY && seen.until > Timestamp::now());

    // A certificate that is replaced is shown by the next connection.
    let next = AgentKey::generate().unwrap();
    let one = AgentName::new("one").unwrap();
    let renewed =
        server.authority.issue_agent(&next.request().unwrap(), &one, Timestamp::now(), DAY).unwrap();
    shown.set(&renewed, &next).unwrap();
    assert_eq!(server.meet(&trust, &shown, "127.0.0.1").await.unwrap().unwrap().key, next.digest());
    assert!(shown.set(&renewed, &key).is_err(), "it is of another key");
}

#[tokio::test]
async fn certificates_of_strangers_and_those_that_have_expired_are_refused() {
    let server = Server::started(Timestamp::now());
    let trust = Trust::Authority(server.authority.certificate().to_owned());
    let (key, stranger) = (AgentKey::generate().unwrap(), Authority::generate().unwrap());
    let late = agent(&server.authority, &key, Timestamp::now() - 2 * DAY);
    for shown in [late, agent(&stranger, &key, Timestamp::now())] {
        let error = server.meet(&trust, &shown, "127.0.0.1").await.unwrap_err();
        assert!(matches!(error, HandshakeError::Refused(_)), "{error}");
    }
    // What identifies a controller identifies no agent.
    let (certificate, key) = server.authority.issue_server(&names(), Timestamp::now()).unwrap();
    let disguised = ClientCertificate::default();
    disguised.set(&certificate, &AgentKey::from_pem(&key).unwrap()).unwrap();
    assert!(matches!(server.meet(&trust, &disguised, "127.0.0.1").await, Err(HandshakeError::Refused(_))));
}

#[tokio::test]
async fn an_agent_cannot_take_the_controllers_place() {
    let genuine = Server::started(Timestamp::now());
    let trust = Trust::Authority(genuine.authority.certificate().to_owned());
    let (key, one) = (AgentKey::generate().unwrap(), AgentName::new("one").unwrap());
    let certificate =
        genuine.authority.issue_agent(&key.request().unwrap(), &one, Timestamp::now(), DAY).unwrap();
    let server = Server {
        shown: ServerCertificate::new(&certificate, &key.to_pem()).unwrap(),
        authority: Authority::generate().unwrap(),
    };
    let error = server.meet(&trust, &nobody(), "127.0.0.1").await.unwrap_err();
    assert!(matches!(error, HandshakeError::Protocol(_) | HandshakeError::OtherName { .. }), "{error}");
}

#[test]
fn a_request_is_granted_for_its_own_key_alone() {
    let authority = Arc::new(Authority::generate().unwrap());
    let (key, other) = (AgentKey::generate().unwrap(), AgentKey::generate().unwrap());
    let (mine, theirs) = (key.request().unwrap(), other.request().unwrap());
    // The body of one request with the end of another: its signature is wrong.
    let middle = mine.len() / 2;
    let mixed = format!("{}{}", &mine[..middle], &theirs[middle..]);
    for wrong in
        ["", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", &mixed]
    {
        assert!(requested_key(wrong).is_err(), "{wrong}");
        let one = AgentName::new("one").unwrap();
        assert!(authority.issue_agent(wrong, &one, Timestamp::now(), DAY).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn callers_of_a_name_of_a_given_certificate_are_shown_it_and_all_others_the_servers_own() {
    let (server, elsewhere) = (Server::started(Timestamp::now()), Authority::generate().unwrap());
    let named = ["node-1.example".parse().unwrap()];
    let (chain, key) = elsewhere.issue_server(&named, Timestamp::now()).unwrap();
    let given = GivenCertificate::from_pem(&chain, &key).unwrap();
    given.check(&named, Timestamp::now()).unwrap();
    assert_eq!(digest_of(given.authority()).unwrap(), digest_of(elsewhere.certificate()).unwrap());
    server.shown.show_to_callers_of_its_names(&given);
    let own = Trust::Authority(server.authority.certificate().to_owned());
    let digest = Trust::Digest(digest_of(elsewhere.certificate()).unwrap());
    let both = format!("{}{}", server.authority.certificate(), elsewhere.certificate());
    let given = Trust::Authority(given.authority().to_owned());
    let refused = Err(HandshakeError::OtherAuthority);
    for (trust, by_name, by_address) in [
        (given, Ok(None), refused.clone()),
        (digest, Ok(None), refused.clone()),
        (own, refused, Ok(None)),
        (Trust::Authority(both), Ok(None), Ok(None)),
    ] {
        assert_eq!(server.meet(&trust, &nobody(), "node-1.example").await, by_name, "{trust:?}");
        assert_eq!(server.meet(&trust, &nobody(), "127.0.0.1").await, by_address, "{trust:?}");
    }
}
