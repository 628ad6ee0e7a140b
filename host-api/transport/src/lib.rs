//! Connections between a controller, its agents and its clients: TLS with its one provider of cryptography,
//! certificates, trust and the errors of a handshake in plain words; and sockets on one host.
//!
//! A controller is its own certificate authority ([`Authority`]). Clients trust that authority and no other ([`Trust`]):
//! they are given its certificate, or the digest of it. Agents show certificates of their own, which the authority
//! issues for a [key](AgentKey) that never leaves the agent.
//!
//! [`MemoryNetwork`] is a network without sockets, for simulations.

mod agents;
mod authority;
mod certificate;
mod client;
mod clock;
mod failure;
mod files;
mod given;
mod key;
mod name;
mod network;
mod provider;
mod server;
mod socket;
#[cfg(feature = "testing")]
pub mod testing;
mod verifier;
mod web;

pub use agents::{AgentTls, AgentTlsStream};
pub use authority::{Authority, SERVER_VALIDITY};
pub use certificate::{
    AgentCertificate, CertificateError, ControllerCertificate, PeerCertificate, digest_of,
};
pub use client::{ClientCertificate, Trust, client_config};
pub use failure::HandshakeError;
pub use files::{KeyFileError, Readers, read_file, write_file};
pub use given::{GivenCertificate, GivenCertificateError};
pub use key::{AgentKey, requested_key};
pub use name::{PublicName, PublicNameError};
pub use network::{Line, MemoryAddress, MemoryCaller, MemoryListener, MemoryNetwork};
pub use server::{ServerCertificate, server_config};
pub use socket::SocketPath;
pub use web::{bundle_client_config, web_client_config};
