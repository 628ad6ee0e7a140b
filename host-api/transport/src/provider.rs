//! The workspace's provider of cryptography: ring.

use std::sync::{Arc, OnceLock};

use rustls::{
    SupportedProtocolVersion,
    crypto::CryptoProvider,
    version::{TLS12, TLS13},
};

/// The versions of TLS that this workspace speaks: among its own programs, and with servers that operators name.
pub(crate) const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13];

/// The versions of TLS for servers that charms name: they may be behind a proxy of some years ago.
pub(crate) const VERSIONS_WITH_STRANGERS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// Returns the provider.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}
