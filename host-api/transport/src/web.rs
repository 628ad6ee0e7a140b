//! The client's side of a connection to a server that is not Periapt's own, such as an issuer of identities.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    client::Resumption,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use crate::{
    certificate::{CertificateError, chain},
    client::roots,
    clock::WallClock,
    provider::{VERSIONS, VERSIONS_WITH_STRANGERS, provider},
};

/// Returns the configuration of a client that speaks HTTP/1.1. It trusts the authorities in a PEM text; without one
/// those that this host trusts.
///
/// # Errors
/// The authorities cannot be read, or this host has none.
pub fn web_client_config(authorities: Option<&str>) -> Result<Arc<ClientConfig>, CertificateError> {
    match authorities {
        Some(pem) => client_of(roots(chain(pem)?).map_err(setup)?, VERSIONS),
        None => client_of(of_this_host()?, VERSIONS),
    }
}

/// Returns the configuration of a client that speaks HTTP/1.1, over TLS 1.2 where a server knows no other. It trusts the
/// authorities in a PEM text, such as the bundle of a container's system. Parts that cannot be read are left out: bundles
/// have certificates that no program needs.
///
/// # Errors
/// No certificate can be read.
pub fn bundle_client_config(bundle: &[u8]) -> Result<Arc<ClientConfig>, CertificateError> {
    let mut roots = RootCertStore::empty();
    let (read, _) = roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle).flatten());
    match read {
        0 => Err(CertificateError::NoCertificate),
        _ => client_of(roots, VERSIONS_WITH_STRANGERS),
    }
}

fn setup(error: rustls::Error) -> CertificateError {
    CertificateError::Setup(error.to_string())
}

fn client_of(
    roots: RootCertStore,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Arc<ClientConfig>, CertificateError> {
    let mut config = ClientConfig::builder_with_details(provider(), Arc::new(WallClock))
        .with_protocol_versions(versions)
        .map_err(setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn of_this_host() -> Result<RootCertStore, CertificateError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A host may have certificates that no program can read, beside those that are needed.
    let (read, _) = roots.add_parsable_certificates(found.certs);
    if read > 0 {
        return Ok(roots);
    }
    let reasons: Vec<String> = found.errors.iter().take(3).map(ToString::to_string).collect();
    Err(CertificateError::Setup(format!(
        "this host has no certificates of authorities {}",
        reasons.join("; ")
    )))
}
