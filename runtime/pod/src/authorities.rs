//! TLS of the pod's own connections. They trust the authorities that the workload's files have, as its programs would.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use periapt_transport::{HandshakeError, bundle_client_config};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{sync::Mutex, task::spawn_blocking};
use tokio_rustls::TlsConnector;

use crate::{
    files::{Place, open_to_read},
    network::PortStream,
};

/// The variable by which an image names its file of certificates.
pub(crate) const VARIABLE: &str = "SSL_CERT_FILE";

/// The files in which systems have the certificates of authorities: those of Debian, Fedora, SUSE and Alpine. The first
/// one that there is counts.
const PLACES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The most bytes of such a file. Those of systems have some hundred KiB.
const MAX_BYTES: u64 = 2 << 20;

/// The most letters of a reason, and of the names of a certificate in it: a server chooses these.
const MAX_REASON: usize = 500;
const MAX_NAMES: usize = 200;

/// The authorities that a workload's files have. Each connection checks whether their file has changed, and reads it again
/// if so. Clones share what was read.
#[derive(Debug, Clone)]
pub(crate) struct Authorities {
    root: PathBuf,
    named: Option<String>,
    last: Arc<Mutex<Option<Bundle>>>,
}

/// A file of certificates as it was read.
#[derive(Debug, Clone)]
struct Bundle {
    path: String,
    version: Version,
    config: Result<Arc<ClientConfig>, String>,
}

/// The signs by which a file differs from an earlier one at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    file: (u64, u64),
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Authorities {
    /// Creates them for the files below a root. `named` is the path below it that the image names, which counts alone.
    pub(crate) fn new(root: PathBuf, named: Option<String>) -> Self {
        Self { root, named: named.filter(|path| !path.is_empty()), last: Arc::default() }
    }

    /// Encrypts a connection to a server, which must prove that it is `host`. The error is in words.
    pub(crate) async fn secure(
        &self,
        host: &str,
        stream: Box<dyn PortStream>,
    ) -> Result<Box<dyn PortStream>, String> {
        self.handshake(host, stream).await.map_err(|reason| reason.chars().take(MAX_REASON).collect())
    }

    async fn handshake(
        &self,
        host: &str,
        stream: Box<dyn PortStream>,
    ) -> Result<Box<dyn PortStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let Bundle { path, config, .. } = self.bundle().await?;
        let connected = TlsConnector::from(config?).connect(name, stream).await;
        Ok(Box::new(connected.map_err(|error| reason(&error, &path))?))
    }

    /// Returns the file as it is now. One caller at a time reads it, so that many hold it in memory once.
    async fn bundle(&self) -> Result<Bundle, String> {
        let mut last = self.last.lock().await;
        let (root, named, known) = (self.root.clone(), self.named.clone(), last.take());
        let read = spawn_blocking(move || current(&root, named.as_deref(), known)).await;
        let bundle = read.map_err(|error| error.to_string())??;
        *last = Some(bundle.clone());
        Ok(bundle)
    }
}

/// Returns the first file that there is: as it was read before, unless it has changed.
fn current(root: &Path, named: Option<&str>, known: Option<Bundle>) -> Result<Bundle, String> {
    let places = match named {
        Some(path) => vec![path],
        None => PLACES.to_vec(),
    };
    for path in &places {
        let opened = Place::of(root, path).and_then(|place| open_to_read(&place));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind == "not-found" => continue,
            Err(error) => return Err(format!("certificates of authorities: {:?}", error.message)),
        };
        let version = Version::of(&file).map_err(|error| format!("{path:?}: {error}"))?;
        return Ok(match known {
            Some(known) if known.path == *path && known.version == version => known,
            _ => Bundle { config: read(&file, path), path: (*path).to_owned(), version },
        });
    }
    Err(format!("the workload's files have no certificates of authorities: there is none of {places:?}"))
}

fn read(file: &File, path: &str) -> Result<Arc<ClientConfig>, String> {
    let mut bundle = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bundle).map_err(|error| format!("{path:?}: {error}"))?;
    if bundle.len() as u64 > MAX_BYTES {
        return Err(format!("{path:?} has more than {MAX_BYTES} bytes"));
    }
    bundle_client_config(&bundle).map_err(|error| format!("{path:?}: {error}"))
}

impl Version {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            file: (found.dev(), found.ino()),
            bytes: found.size(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// Returns the reason of a failed handshake.
fn reason(error: &io::Error, path: &str) -> String {
    match HandshakeError::of(error) {
        None => format!("the handshake of TLS failed: {error}"),
        Some(HandshakeError::OtherAuthority) => {
            format!("its certificate is of an authority that is not in {path:?}")
        }
        Some(HandshakeError::NotYetValid(_)) => {
            "its certificate is not valid yet, or a clock is wrong".to_owned()
        }
        Some(HandshakeError::Expired(_)) => "its certificate has expired, or a clock is wrong".to_owned(),
        Some(HandshakeError::OtherName { names, .. }) => {
            let names: String = names.chars().take(MAX_NAMES).collect();
            format!("its certificate is for {names:?}")
        }
        Some(HandshakeError::Refused(reason)) => format!("it refuses the handshake of TLS: {reason}"),
        Some(HandshakeError::Protocol(reason)) => format!("it does not speak TLS 1.2 or 1.3 ({reason})"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use periapt_host_api::Timestamp;
    use periapt_transport::{Authority, ServerCertificate, server_config};
    use rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        version::TLS12,
    };
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// The root of a workload with a directory for certificates.
    fn root() -> TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc/ssl/certs")).unwrap();
        root
    }

    /// Connects to a server at `loki-0`, and returns the reason for a failure.
    async fn refusal(authorities: &Authorities, authority: &Authority) -> Option<String> {
        let (certificate, key) = issued(authority);
        let shown = ServerCertificate::new(&certificate, &key).unwrap();
        let server = server_config(&shown, authority.certificate()).unwrap();
        refusal_of(authorities, server).await
    }

    /// Returns the certificate and the key of a server at `loki-0`, as PEM texts.
    fn issued(authority: &Authority) -> (String, String) {
        authority.issue_server(&["loki-0".parse().unwrap()], Timestamp::now()).unwrap()
    }

    /// Connects to `loki-0`, and returns the reason for a failure.
    async fn refusal_of(authorities: &Authorities, server: Arc<ServerConfig>) -> Option<String> {
        let acceptor = TlsAcceptor::from(server);
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let server = tokio::spawn(async move {
            let mut stream = acceptor.accept(theirs).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        });
        let said = match authorities.secure("loki-0", Box::new(ours)).await {
            Ok(mut stream) => {
                let mut said = String::new();
                stream.read_to_string(&mut said).await.unwrap();
                Ok(said)
            }
            Err(reason) => Err(reason),
        };
        let served = server.await.unwrap();
        match said {
            Ok(said) => {
                assert_eq!(said, "hello");
                served.unwrap();
                None
            }
            Err(reason) => Some(reason),
        }
    }

    #[tokio::test]
    async fn the_first_file_that_there_is_counts_and_each_change_of_it() {
        let (root, one, other) = (root(), Authority::generate().unwrap(), Authority::generate().unwrap());
        let at = |path: &str| root.path().join(path.trim_start_matches('/'));
        let authorities = Authorities::new(root.path().to_owned(), None);
        let reason = refusal(&authorities, &one).await.unwrap();
        assert!(reason.contains("the workload's files have no certificates of authorities"), "{reason}");
        fs::write(at("/etc/ssl/cert.pem"), one.certificate()).unwrap();
        assert_eq!(refusal(&authorities, &one).await, None);
        let reason = refusal(&authorities, &other).await.unwrap();
        assert!(reason.contains("is not in \"/etc/ssl/cert.pem\""), "{reason}");
        fs::write(at(PLACES[0]), other.certificate()).unwrap();
        assert_eq!(refusal(&authorities, &other).await, None);
        let reason = refusal(&authorities, &one).await.unwrap();
        assert!(reason.contains("is not in \"/etc/ssl/certs/ca-certificates.crt\""), "{reason}");
        // As the tools of systems replace it.
        fs::write(at("/new"), [one.certificate(), other.certificate()].concat()).unwrap();
        fs::rename(at("/new"), at(PLACES[0])).unwrap();
        for authority in [&one, &other] {
            assert_eq!(refusal(&authorities, authority).await, None);
        }

        let named = Authorities::new(root.path().to_owned(), Some("/my/ca.pem".to_owned()));
        let reason = refusal(&named, &one).await.unwrap();
        assert!(reason.contains("there is none of [\"/my/ca.pem\"]"), "{reason}");
        fs::create_dir(at("/my")).unwrap();
        fs::write(at("/my/ca.pem"), one.certificate()).unwrap();
        assert_eq!(refusal(&named, &one).await, None);
    }

    #[tokio::test]
    async fn a_server_may_speak_tls_1_2() {
        let (root, authority) = (root(), Authority::generate().unwrap());
        let (certificate, key) = issued(&authority);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let earlier = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS12]);
        let earlier = earlier.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key);
        let earlier = Arc::new(earlier.unwrap());
        let authorities = Authorities::new(root.path().to_owned(), None);
        let path = root.path().join("etc/ssl/certs/ca-certificates.crt");
        fs::write(&path, Authority::generate().unwrap().certificate()).unwrap();
        let reason = refusal_of(&authorities, Arc::clone(&earlier)).await.unwrap();
        assert!(reason.contains("its certificate is of an authority that is not in"), "{reason}");
        fs::write(&path, [authority.certificate(), authority.certificate()].concat()).unwrap();
        assert_eq!(refusal_of(&authorities, earlier).await, None);
    }

    #[tokio::test]
    async fn a_file_that_is_none_of_certificates_is_an_error_and_not_waited_for() {
        let authority = Authority::generate().unwrap();
        type Make = fn(&Path);
        let makes: [(Make, &str); 5] = [
            (|path| fs::write(path, "no certificate").unwrap(), "no certificate in PEM form"),
            (|path| fs::write(path, vec![b'-'; (2 << 20) + 1]).unwrap(), "more than 2097152 bytes"),
            (|path| fs::create_dir(path).unwrap(), "a regular file"),
            (
                |path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap(),
                "a regular file",
            ),
            (|path| std::os::unix::fs::symlink(path, path).unwrap(), "certificates of authorities: "),
        ];
        for (make, expected) in makes {
            let root = root();
            make(&root.path().join("etc/ssl/certs/ca-certificates.crt"));
            let authorities = Authorities::new(root.path().to_owned(), None);
            // It is read once, and the second answer is that of the first.
            for _ in 0..2 {
                let reason = refusal(&authorities, &authority).await.unwrap();
                assert!(reason.contains(expected), "{expected}: {reason}");
            }
        }
        let relative = Authorities::new("/".into(), Some("x".repeat(10_000)));
        let reason = refusal(&relative, &authority).await.unwrap();
        assert!(reason.contains("must be absolute") && reason.len() <= MAX_REASON, "{reason}");
    }
}
