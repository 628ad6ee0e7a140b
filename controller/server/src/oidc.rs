//! Logins of external users at an issuer of identities: OpenID Connect by the device authorization grant (RFC 8628).
//! The controller is the client of the issuer. Its own clients see an address and a code alone.

mod client;
mod fetch;
mod id_token;
mod logins;
mod metadata;
mod options;
mod signatures;

pub(crate) use self::logins::IssuerLogins;
pub use self::options::{ClientSecret, IssuerUrl, IssuerUrlError, OidcOptions};
