//! The client's side of a connection: the authority that the client trusts, and the client's own certificate.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use periapt_host_api::Digest;
use rustls::{
    ClientConfig, Error, RootCertStore, SignatureScheme,
    client::{ResolvesClientCert, Resumption, WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
    sign::CertifiedKey,
};

use crate::{
    certificate::{CertificateError, certified, chain},
    clock::WallClock,
    key::AgentKey,
    provider::{VERSIONS, provider},
    verifier::{CertificateJudge, JudgedVerifier},
};

/// The authority that a client trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The authorities with these certificates, as PEM text.
    Authority(String),
    /// The authority whose certificate has this SHA-256 digest. The server must show it with its own certificate.
    Digest(Digest),
}

/// The certificate that a client shows; none until one is set. Clones share it.
#[derive(Clone, Default)]
pub struct ClientCertificate(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.read().is_some() {
            "ClientCertificate(set)"
        } else {
            "ClientCertificate(none)"
        })
    }
}

impl ClientCertificate {
    /// Sets the certificate for connections that are opened from now on.
    ///
    /// # Errors
    /// The certificate cannot be read, or is of another key.
    pub fn set(&self, certificate: &str, key: &AgentKey) -> Result<(), CertificateError> {
        self.set_pem(certificate, &key.to_pem())
    }

    /// Sets the certificate for connections that are opened from now on, with its key as PEM text.
    ///
    /// # Errors
    /// See [`Self::set`].
    pub fn set_pem(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        *self.0.write() = Some(Arc::new(certified(certificate, key)?));
        Ok(())
    }
}

impl ClientCertificate {
    /// Returns the certificate that is set.
    pub(crate) fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }

    fn has_certs(&self) -> bool {
        self.0.read().is_some()
    }
}

/// Returns the configuration of a client.
///
/// # Errors
/// The trusted authority cannot be read.
pub fn client_config(
    trust: &Trust,
    shown: &ClientCertificate,
) -> Result<Arc<ClientConfig>, CertificateError> {
    let setup = |error: Error| CertificateError::Setup(error.to_string());
    let builder = ClientConfig::builder_with_details(provider(), Arc::new(WallClock))
        .with_protocol_versions(VERSIONS)
        .map_err(setup)?;
    let builder = match trust {
        Trust::Authority(pem) => builder.with_root_certificates(roots(chain(pem)?).map_err(setup)?),
        Trust::Digest(digest) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(JudgedVerifier(ByDigest(*digest))))
        }
    };
    let mut config = builder.with_client_cert_resolver(Arc::new(shown.clone()));
    config.alpn_protocols = vec![b"h2".to_vec()];
    // A resumed session would show the certificate of the session before, which may have been renewed since.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

pub(crate) fn roots(certificates: Vec<CertificateDer<'static>>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// A judge that knows its authority by a digest.
#[derive(Debug)]
struct ByDigest(Digest);

impl CertificateJudge for ByDigest {
    fn judge(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let mut certificates = std::iter::once(shown).chain(intermediates);
        let authority = certificates.find(|certificate| Digest::of(certificate) == self.0);
        let authority = authority.ok_or(rustls::CertificateError::UnknownIssuer)?;
        let roots = roots(vec![authority.clone().into_owned()])?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        // An authority of its own staples nothing about its certificates.
        verifier.verify_server_cert(shown, intermediates, server, &[], now).map(drop)
    }
}
