//! The workspace's provider of cryptography: ring.

use std::sync::{Arc, OnceLock};

use rustls::{SupportedProtocolVersion, crypto::CryptoProvider, version::TLS13};

/// The versions of TLS that this workspace speaks.
pub(crate) const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13];

/// Returns the provider.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}
