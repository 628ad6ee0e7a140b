//! The server's side of a connection: its certificate, which can be replaced, and the identification of clients.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use rustls::{
    Error, ServerConfig,
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};

use crate::{
    certificate::{CertificateError, certified, chain},
    client::roots,
    clock::WallClock,
    given::{GivenCertificate, is_for},
    provider::{VERSIONS, provider},
};

/// A server's certificate with its key, and the one that an operator has given. Clones share them. Its debug output does
/// not show the keys.
#[derive(Clone)]
pub struct ServerCertificate(Arc<RwLock<Shown>>);

struct Shown {
    own: Arc<CertifiedKey>,
    given: Option<Arc<CertifiedKey>>,
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerCertificate(..)")
    }
}

impl ServerCertificate {
    /// Reads a certificate, with those that lead to its authority, and its key.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub fn new(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let own = Arc::new(certified(certificate, key)?);
        Ok(Self(Arc::new(RwLock::new(Shown { own, given: None }))))
    }

    /// Replaces the certificate for connections that are opened from now on.
    ///
    /// # Errors
    /// See [`Self::new`]; the certificate then stays.
    pub fn replace(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        self.0.write().own = Arc::new(certified(certificate, key)?);
        Ok(())
    }

    /// Shows another certificate to clients that call the server by a name of that one, on connections that are opened
    /// from now on. Clients that call by an address, or by another name, are shown the server's own.
    pub fn show_to_callers_of_its_names(&self, given: &GivenCertificate) {
        self.0.write().given = Some(Arc::clone(given.certified()));
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.read();
        let given = shown.given.as_ref().zip(hello.server_name());
        let given = given.filter(|(given, called)| is_for(given, called)).map(|(given, _)| given);
        Some(Arc::clone(given.unwrap_or(&shown.own)))
    }
}

/// Returns the configuration of a server, whose clients may show certificates of an authority, given as PEM text.
///
/// # Errors
/// The authority cannot be read.
pub fn server_config(
    shown: &ServerCertificate,
    authority_of_clients: &str,
) -> Result<Arc<ServerConfig>, CertificateError> {
    let setup = |error: Error| CertificateError::Setup(error.to_string());
    let roots = roots(chain(authority_of_clients)?).map_err(setup)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .allow_unauthenticated()
        .build()
        .map_err(|error| CertificateError::Setup(error.to_string()))?;
    let mut config = ServerConfig::builder_with_details(provider(), Arc::new(WallClock))
        .with_protocol_versions(VERSIONS)
        .map_err(setup)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(shown.clone()));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Each connection shows its certificate anew: none outlives its end in a session.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
