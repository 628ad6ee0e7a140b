//! The HTTP/2 client that agent and command line share: one multiplexed connection to a controller, with typed
//! methods for all of its API. A client that knows several controllers of one store goes on to the next when one fails.
//!
//! Calls return a [`ClientError`], which says that the controller refused, was unreachable or sent a malformed
//! answer. Streams end with an error when the connection breaks; the reader opens a new stream from its last
//! position.

mod address;
mod addresses;
mod api;
mod attempts;
mod backoff;
mod connect;
mod connection;
mod dial;
mod error;
mod ndjson;
mod options;
mod partial_file;
mod peer;
mod peers;
mod request;
mod retry;
mod seen;

pub use addresses::{Addresses, AddressesError};
pub use api::{Download, ExecSender, ExecSession, KnownLayer, QueuedCommands};
pub use backoff::Backoff;
pub use connection::{Client, Learned};
pub use error::{Attempt, AttemptError, ClientError, RequestOutcome};
pub use ndjson::NdJson;
pub use options::{Identity, Options, StartAt};
pub use partial_file::PartialFile;
pub use periapt_transport::{ClientCertificate, HandshakeError, Trust};
pub use seen::Seen;

/// The result of a call.
pub type Result<T> = std::result::Result<T, ClientError>;
