//! Docker's registry on loopback. It ends with the value.

use std::{
    fs,
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use periapt_transport::testing::free_ports;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

pub(super) const USER: &str = "jane";
pub(super) const PASSWORD: &str = "secret";

/// The password as htpasswd keeps it, by bcrypt.
const HASH: &str = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// The callers that a registry answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// All, without TLS.
    Open,
    /// One user, with TLS.
    Users,
}

#[derive(Debug)]
pub(super) struct Registry {
    process: Child,
    host: String,
    authority: String,
    _directory: TempDir,
}

impl Registry {
    /// Starts a registry, and waits until it listens.
    pub(super) fn start(access: &Access) -> Self {
        let directory = TempDir::new().unwrap();
        let own = |name: &str| directory.path().join(name).display().to_string();
        let port = free_ports(1).unwrap()[0];
        let host = format!("127.0.0.1:{port}");
        let mut configuration = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {host}\n",
            own("data")
        );
        let mut authority = String::new();
        if *access == Access::Users {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
            let key = KeyPair::generate().unwrap();
            let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            let leaf = leaf.signed_by(&key, &issuer).unwrap();
            authority = issuer.pem();
            fs::write(own("certificate"), leaf.pem()).unwrap();
            fs::write(own("key"), key.serialize_pem()).unwrap();
            fs::write(own("users"), format!("{USER}:{HASH}\n")).unwrap();
            configuration.push_str(&format!(
                "  tls:\n    certificate: {}\n    key: {}\nauth:\n  htpasswd:\n    realm: tests\n    path: {}\n",
                own("certificate"),
                own("key"),
                own("users")
            ));
        }
        fs::write(own("configuration"), configuration).unwrap();
        let log = fs::File::create(own("log")).unwrap();
        let process = Command::new(super::program())
            .args(["serve", &own("configuration")])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut registry = Self { process, host, authority, _directory: directory };
        let begun = Instant::now();
        while TcpStream::connect(&registry.host).is_err() {
            let is_running = registry.process.try_wait().unwrap().is_none();
            let log = registry._directory.path().join("log");
            assert!(
                is_running && begun.elapsed() < Duration::from_secs(60),
                "{}",
                fs::read_to_string(log).unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        registry
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the certificate of its authority, in PEM.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
