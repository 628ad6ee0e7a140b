//! The content of certificates, as far as it is used.

use periapt_host_api::{AgentName, Digest, Timestamp};
use rustls::{
    Error,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use x509_cert::{
    Certificate,
    der::{Decode as _, Encode as _},
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use crate::{clock::timestamp, provider::provider};

/// The beginning of the name that an agent's certificate has, as a URI.
pub(crate) const AGENT_URI: &str = "periapt:agent:";

/// The beginning of the name that a controller's certificate has among controllers, as a URI.
pub(crate) const CONTROLLER_URI: &str = "periapt:controller:";

/// An error of a certificate, a key or a request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CertificateError {
    /// The text has no certificate in PEM form.
    #[error("no certificate in PEM form")]
    NoCertificate,
    /// A certificate cannot be read.
    #[error("a certificate that cannot be read")]
    Malformed,
    /// A key cannot be read.
    #[error("no private key in PEM form: {0}")]
    Key(String),
    /// The certificate was made for another key.
    #[error("the certificate was made for another key")]
    OtherKey,
    /// A request for a certificate is refused.
    #[error("no request for a certificate that can be granted: {0}")]
    Request(String),
    /// A certificate cannot be made.
    #[error("the certificate cannot be made: {0}")]
    Making(String),
    /// TLS cannot be set up with the certificate.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

/// The certificate that an agent showed, already verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCertificate {
    /// The agent's name.
    pub agent: AgentName,
    /// The SHA-256 digest of the agent's public key (its `SubjectPublicKeyInfo`).
    pub key: Digest,
    /// The end of its validity.
    pub until: Timestamp,
}

/// The certificate that another controller showed, already verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerCertificate {
    /// The controller's name among several.
    pub member: String,
    /// The end of its validity.
    pub until: Timestamp,
}

/// The certificate that a client showed, already verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerCertificate {
    /// An agent's.
    Agent(AgentCertificate),
    /// Another controller's.
    Controller(ControllerCertificate),
}

impl PeerCertificate {
    /// Reads a certificate in DER form.
    ///
    /// # Errors
    /// It cannot be read, or names neither an agent nor a controller.
    pub fn read(der: &[u8]) -> Result<Self, CertificateError> {
        let certificate = parsed(der)?;
        let content = certificate.tbs_certificate();
        let names = content.get_extension::<SubjectAltName>().map_err(|_| CertificateError::Malformed)?;
        let names = names.map_or_else(Vec::new, |(_, names)| names.0);
        let uris = || {
            names.iter().filter_map(|name| match name {
                GeneralName::UniformResourceIdentifier(uri) => Some(uri.as_str()),
                _ => None,
            })
        };
        let until = content.validity().not_after.to_unix_duration().as_secs();
        let until = timestamp(i64::try_from(until).unwrap_or(i64::MAX));
        if let Some(agent) = uris().find_map(|uri| AgentName::new(uri.strip_prefix(AGENT_URI)?).ok()) {
            let key = Digest::of(&public_key(&certificate)?);
            return Ok(Self::Agent(AgentCertificate { agent, key, until }));
        }
        let member = uris().find_map(|uri| uri.strip_prefix(CONTROLLER_URI)).map(str::to_owned);
        let member = member.ok_or(CertificateError::Malformed)?;
        Ok(Self::Controller(ControllerCertificate { member, until }))
    }
}

/// Returns the digest of the last certificate in a PEM text: the authority that clients trust.
///
/// # Errors
/// There is no certificate.
pub fn digest_of(pem: &str) -> Result<Digest, CertificateError> {
    Ok(Digest::of(chain(pem)?.last().ok_or(CertificateError::NoCertificate)?))
}

/// Returns the certificates in a PEM text; at least one.
pub(crate) fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|_| CertificateError::Malformed)?;
    if all.is_empty() { Err(CertificateError::NoCertificate) } else { Ok(all) }
}

pub(crate) fn parsed(der: &[u8]) -> Result<Certificate, CertificateError> {
    Certificate::from_der(der).map_err(|_| CertificateError::Malformed)
}

/// Returns a certificate's public key in DER form.
pub(crate) fn public_key(certificate: &Certificate) -> Result<Vec<u8>, CertificateError> {
    let key = certificate.tbs_certificate().subject_public_key_info();
    key.to_der().map_err(|_| CertificateError::Malformed)
}

/// Returns a certificate, with those that lead to its authority, and its key, which belong together.
pub(crate) fn certified(certificate: &str, key: &str) -> Result<CertifiedKey, CertificateError> {
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|error| CertificateError::Key(error.to_string()))?;
    CertifiedKey::from_der(chain(certificate)?, key, &provider()).map_err(|error| match error {
        Error::InconsistentKeys(_) => CertificateError::OtherKey,
        other => CertificateError::Setup(other.to_string()),
    })
}
