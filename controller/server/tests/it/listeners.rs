//! A controller with TLS and a socket, as the program opens them.

use std::{os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hyper_util::rt::{TokioExecutor, TokioIo};
use periapt_client::{Client, ClientCertificate, ClientError, HandshakeError, Identity, Options, Trust};
use periapt_controller::{BuildError, CertificateFiles, Clock as _, Handle, Listen, RunError, TlsListen};
use periapt_host_api::{
    Digest, ErrorCode, Timestamp,
    agent::{Admission, CertificateRequest},
    command::ControllerCommand,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_transport::{AgentKey, Authority, PublicName, Readers, client_config, digest_of, write_file};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixListener},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::fixture::{ManualClock, TIMEOUT, in_directory};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A running controller, whose clock begins at the machine's time.
pub(crate) struct Listening {
    pub(crate) directory: TempDir,
    pub(crate) handle: Handle,
    pub(crate) clock: ManualClock,
    running: JoinHandle<Result<(), RunError>>,
}

impl Listening {
    pub(crate) async fn open() -> Self {
        Self::open_in(TempDir::new().unwrap()).await
    }

    /// Opens a controller that closes no stranger's connection for as long as a test may take.
    pub(crate) async fn open_patient() -> Self {
        Self::open_with(TempDir::new().unwrap(), 20 * TIMEOUT).await
    }

    async fn open_in(directory: TempDir) -> Self {
        Self::open_with(directory, 2 * TIMEOUT).await
    }

    async fn open_with(directory: TempDir, stall_within: Duration) -> Self {
        let listen = tls_in(directory.path(), "127.0.0.1:0");
        Self::open_on(directory, listen, stall_within).await
    }

    async fn open_on(directory: TempDir, listen: TlsListen, stall_within: Duration) -> Self {
        let clock = ManualClock::default();
        clock.advance(Timestamp::now().duration_since(clock.now()).unsigned_abs());
        let mut options = in_directory(directory.path());
        options.listen = Listen::Tls(listen);
        options.clock = Arc::new(clock.clone());
        options.stall_within = stall_within;
        let service = options.build().await.unwrap();
        let mut handle = service.handle();
        let running = tokio::spawn(service.run(CancellationToken::new()));
        assert!(handle.serving().await);
        Self { directory, handle, clock, running }
    }

    pub(crate) async fn close(self) -> TempDir {
        self.handle.shutdown();
        tokio::time::timeout(TIMEOUT, self.running).await.unwrap().unwrap().unwrap();
        self.directory
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::Authority(std::fs::read_to_string(self.directory.path().join("ca.pem")).unwrap())
    }

    /// Returns a new client, which has no connection yet.
    pub(crate) fn over_tls(&self, trust: Trust) -> Client {
        let identity = Identity::User("admin".parse().unwrap());
        Client::new(Options::new(self.handle.url(), identity).with_trust(trust)).unwrap()
    }

    pub(crate) fn on_socket(&self) -> Client {
        let url = format!("unix://{}", socket_in(self.directory.path()).display());
        Client::new(Options::new(url, Identity::Local)).unwrap()
    }
}

fn tls_in(directory: &Path, address: &str) -> TlsListen {
    TlsListen::in_directory(directory, address.parse().unwrap(), Vec::new()).unwrap()
}

/// Returns the certificate of a new authority in a directory.
pub(crate) fn authority_in(directory: &Path) -> String {
    tls_in(directory, "127.0.0.1:0").authority.certificate().to_owned()
}

pub(crate) fn socket_in(directory: &Path) -> std::path::PathBuf {
    directory.join("control.socket")
}

#[tokio::test]
async fn the_socket_is_for_the_controllers_user_and_over_tls_a_stranger_is_nobody() {
    let controller = Listening::open().await;
    let mode = std::fs::metadata(socket_in(controller.directory.path())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let add = ControllerCommand::add_model("m".parse().unwrap());
    controller.on_socket().controller_command(add).await.unwrap();

    let stranger = controller.over_tls(controller.trust());
    for refused in [stranger.models().await.map(drop), stranger.controller().await.map(drop)] {
        let refusal = refused.unwrap_err().refusal().cloned().unwrap();
        assert_eq!(refusal.code, ErrorCode::NotLoggedIn, "what a stranger says of itself counts for nothing");
    }
    controller.close().await;
}

#[tokio::test]
async fn a_controller_with_another_authority_is_sent_nothing() {
    let (controller, other) = (Listening::open().await, TempDir::new().unwrap());
    let trust = Trust::Authority(authority_in(other.path()));
    let error = controller.over_tls(trust).models().await.unwrap_err();
    assert!(
        matches!(&error, ClientError::NotTrusted { reason: HandshakeError::OtherAuthority, .. }),
        "{error}"
    );
    controller.close().await;
}

#[tokio::test]
async fn the_certificate_is_renewed_after_half_of_its_validity_while_the_controller_runs() {
    let controller = Listening::open().await;
    let connected = controller.over_tls(controller.trust());
    assert!(connected.models().await.unwrap_err().refusal().is_some());
    controller.clock.advance(44 * DAY);
    assert!(controller.over_tls(controller.trust()).models().await.unwrap_err().refusal().is_some());
    // The clients' clock is the machine's: by it, a certificate of the controller's new time is not valid yet.
    controller.clock.advance(2 * DAY);
    let renewed = async {
        loop {
            match controller.over_tls(controller.trust()).models().await.unwrap_err() {
                ClientError::NotTrusted { reason: HandshakeError::NotYetValid(by), .. } => return by,
                other => assert!(other.refusal().is_some(), "{other}"),
            }
        }
    };
    let by = tokio::time::timeout(TIMEOUT, renewed).await.unwrap();
    assert!(by > 45 * DAY && by <= 46 * DAY, "{by:?}");
    assert!(connected.models().await.unwrap_err().refusal().is_some(), "an open connection goes on");
    controller.close().await;
}

#[tokio::test]
async fn without_tls_the_address_answers_nothing() {
    let controller = Listening::open().await;
    let mut stream = TcpStream::connect(controller.handle.address()).await.unwrap();
    stream.write_all(b"GET /v1/controller HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // The controller may close the connection before it has read everything.
    let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    controller.close().await;
}

#[tokio::test]
async fn a_controller_takes_the_place_of_a_socket_that_was_left_and_keeps_its_authority() {
    let controller = Listening::open().await;
    let trust = controller.trust();
    let directory = controller.close().await;
    // A controller that is killed leaves its socket behind.
    let socket = socket_in(directory.path());
    std::fs::remove_file(&socket).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    let controller = Listening::open_in(directory).await;
    controller.on_socket().controller().await.unwrap();
    assert!(controller.over_tls(trust).models().await.unwrap_err().refusal().is_some());
    controller.close().await;
}

#[tokio::test]
async fn a_controller_that_listens_on_every_address_needs_a_public_name() {
    let directory = TempDir::new().unwrap();
    let mut options = in_directory(directory.path());
    options.listen = Listen::Tls(tls_in(directory.path(), "0.0.0.0:0"));
    match options.build().await {
        Err(error @ BuildError::Unnamed(_)) => {
            assert!(error.to_string().contains("--public-name says by which name"), "{error}");
        }
        other => panic!("{:?}", other.map(drop)),
    }
    let mut tls = tls_in(directory.path(), "0.0.0.0:0");
    tls.public_names = vec!["localhost".parse().unwrap()];
    let mut options = in_directory(directory.path());
    options.listen = Listen::Tls(tls);
    let handle = options.build().await.unwrap().handle();
    assert_eq!(handle.url(), format!("https://localhost:{}", handle.address().port()));
}

/// Asks as a stranger, until the controller closes the connection.
async fn ask_until_closed(controller: &Listening) {
    let config = client_config(&controller.trust(), &ClientCertificate::default()).unwrap();
    let stream = TcpStream::connect(controller.handle.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let ended = tokio::spawn(connection);
    let asked = async {
        loop {
            let request = http::Request::get(format!("{}/v1/models", controller.handle.url()));
            match sender.send_request(request.body(String::new()).unwrap()).await {
                Ok(answer) => assert_eq!(answer.status(), 401),
                Err(_) => return,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.unwrap();
    let _ = ended.await.unwrap();
}

#[tokio::test]
async fn who_is_granted_nothing_keeps_no_connection_however_much_it_asks() {
    let controller = Listening::open_with(TempDir::new().unwrap(), Duration::from_millis(400)).await;
    ask_until_closed(&controller).await;
    controller.close().await;
}

#[tokio::test]
async fn whose_first_request_takes_long_keeps_the_connection() {
    // A caller has a quarter of it for the beginning of its first request.
    let controller = Listening::open_with(TempDir::new().unwrap(), Duration::from_secs(8)).await;
    let session = controller.on_socket().open_session().await.unwrap();
    let options = Options::new(controller.handle.url(), Identity::Token(session.token));
    let client = Client::new(options.with_trust(controller.trust())).unwrap();
    let go = watch::Sender::new(false);
    let (begun, mut has_begun) = watch::channel(false);
    let waits = go.subscribe();
    let content = move || {
        let (mut waits, begun) = (waits.clone(), begun.clone());
        let rest = stream::once(async move {
            begun.send_replace(true);
            let _ = waits.wait_for(|go| *go).await;
            Ok(Bytes::from_static(b"ws"))
        });
        stream::iter([Ok(Bytes::from_static(b"ro"))]).chain(rest)
    };
    let uploading = tokio::spawn(async move { client.upload_resource(&Digest::of(b"rows"), content).await });
    has_begun.wait_for(|begun| *begun).await.unwrap();
    // A stranger's connection, which is younger, is closed meanwhile.
    ask_until_closed(&controller).await;
    go.send_replace(true);
    tokio::time::timeout(TIMEOUT, uploading).await.unwrap().unwrap().unwrap();
    controller.close().await;
}

/// Writes a certificate of an authority with its key, and returns the certificate itself in DER form.
fn give(authority: &Authority, files: &CertificateFiles, names: &[PublicName]) -> CertificateDer<'static> {
    let (certificate, key) = authority.issue_server(names, Timestamp::now()).unwrap();
    write_file(&files.key, &key, Readers::Owner).unwrap();
    write_file(&files.certificate, &certificate, Readers::All).unwrap();
    CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()
}

/// Returns the certificate that a client is shown that calls by a name and trusts an authority.
async fn shown_to(controller: &Listening, called: &'static str, authority: &str) -> CertificateDer<'static> {
    let config =
        client_config(&Trust::Authority(authority.to_owned()), &ClientCertificate::default()).unwrap();
    let stream = TcpStream::connect(controller.handle.address()).await.unwrap();
    let name = ServerName::try_from(called).unwrap();
    let stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap().first().unwrap().clone().into_owned()
}

#[tokio::test]
async fn a_given_certificate_is_shown_by_its_name_and_replaced_when_its_files_are() {
    let (directory, elsewhere) = (TempDir::new().unwrap(), Authority::generate().unwrap());
    let names = ["localhost".parse().unwrap()];
    let place = |file: &str| directory.path().join(file);
    let files = CertificateFiles { certificate: place("given.pem"), key: place("given-key.pem") };
    let first = give(&elsewhere, &files, &names);
    let listen = TlsListen {
        given: Some(files.clone()),
        public_names: names.to_vec(),
        ..tls_in(directory.path(), "127.0.0.1:0")
    };
    let controller = Listening::open_on(directory, listen, 2 * TIMEOUT).await;
    assert_eq!(shown_to(&controller, "localhost", elsewhere.certificate()).await, first);
    let Trust::Authority(own) = controller.trust() else { panic!("no authority") };
    assert_ne!(shown_to(&controller, "127.0.0.1", &own).await, first, "an address is not its name");

    // A certificate that clients would refuse is not shown.
    give(&Authority::generate().unwrap(), &files, &names);
    controller.clock.advance(Duration::from_secs(60));
    assert_eq!(shown_to(&controller, "localhost", elsewhere.certificate()).await, first);
    let second = give(&elsewhere, &files, &names);
    let replaced = async {
        while shown_to(&controller, "localhost", elsewhere.certificate()).await != second {
            controller.clock.advance(Duration::from_secs(60));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, replaced).await.unwrap();

    // An agent joins by the name, and knows both authorities afterwards.
    let url = controller.handle.url();
    assert!(url.starts_with("https://localhost:"), "{url}");
    let digest = Trust::Digest(digest_of(elsewhere.certificate()).unwrap());
    let (one, key) = ("one".parse().unwrap(), AgentKey::generate().unwrap());
    let token = Token::new(TokenKind::Join, [3; TOKEN_BYTES]);
    let admission = Admission { agent: one, token: token.digest(), valid_for: 60, again: false };
    let one = admission.agent.clone();
    controller.on_socket().controller_command(ControllerCommand::AdmitAgent(admission)).await.unwrap();
    let asked = CertificateRequest { request: key.request().unwrap(), token: Some(token) };
    let issued = controller.over_tls(digest).agent_certificate(&one, &asked).await.unwrap();
    assert_eq!(issued.authority, format!("{own}{}", elsewhere.certificate()));
    controller.close().await;
}
