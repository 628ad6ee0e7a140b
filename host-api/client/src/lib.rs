//! The HTTP/2 client that agent and command line share: one multiplexed connection to a controller, with typed
//! methods for all of its API.
//!
//! Calls return a [`ClientError`], which says that the controller refused, was unreachable or sent a malformed
//! answer. Streams end with an error when the connection breaks; the reader opens a new stream from its last
//! position.

mod address;
mod api;
mod backoff;
mod connection;
mod dial;
mod error;
mod ndjson;
mod options;
mod request;
mod retry;

pub use backoff::Backoff;
pub use connection::Client;
pub use error::{ClientError, RequestOutcome};
pub use ndjson::NdJson;
pub use options::{Identity, Options};
pub use periapt_transport::{ClientCertificate, HandshakeError, Trust};

/// The result of a call.
pub type Result<T> = std::result::Result<T, ClientError>;
