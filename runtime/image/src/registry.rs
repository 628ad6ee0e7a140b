//! Images from registries, by the protocol of OCI's distribution specification.

mod access;
mod http;
mod pull;
mod reference;

use std::time::Duration;

pub use pull::{PullProgress, PulledImage};
pub use reference::{ImageReference, ImageReferenceError};

use crate::{error::ImageError, limits::ImageLimits, platform::ImagePlatform, shown::shown};
use http::Client;

/// The access to images in registries.
#[derive(Debug)]
pub struct ImageRegistry {
    client: Client,
    options: PullOptions,
}

/// The options of pulls.
#[derive(Debug, Clone)]
pub struct PullOptions {
    /// The platform that images are to run on.
    pub platform: ImagePlatform,
    /// The user of the registry; without one images that are for all are pulled.
    pub credentials: Option<RegistryCredentials>,
    /// Certificates in PEM of the authorities that are trusted; without them those that this host trusts.
    pub authorities: Option<String>,
    /// The registries that may be called without TLS.
    pub plain_http: PlainHttp,
    /// The bounds of an image, with the time of a whole pull.
    pub limits: ImageLimits,
    /// The longest wait for a connection, for an answer, and for its next piece.
    pub wait: Duration,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self {
            platform: ImagePlatform::of_this_host(),
            credentials: None,
            authorities: None,
            plain_http: PlainHttp::Refused,
            limits: ImageLimits::default(),
            wait: Duration::from_secs(30),
        }
    }
}

/// The use of HTTP without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// Each registry is called with TLS.
    Refused,
    /// A registry on this host's loopback is called without.
    OnLoopback,
}

/// A user of a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryCredentials {
    /// The name.
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl std::fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryCredentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// An image that was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// There is no connection to the registry.
    #[error("registry {host} cannot be reached: {reason}")]
    Unreachable {
        /// The host and port.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The registry shows the image to its users alone, and no user was given.
    #[error(
        "registry {host} asks for credentials for {repository}, and none are given; or there is no such repository"
    )]
    CredentialsNeeded {
        /// The host and port.
        host: String,
        /// The repository.
        repository: String,
    },
    /// The registry refuses its user.
    #[error("registry {host} refuses the credentials of {username} for {repository}")]
    CredentialsRefused {
        /// The host and port.
        host: String,
        /// The name of the user.
        username: String,
        /// The repository.
        repository: String,
    },
    /// There is no such repository.
    #[error("registry {host} has no repository {repository}")]
    NoRepository {
        /// The host and port.
        host: String,
        /// The repository.
        repository: String,
    },
    /// The repository has no such image.
    #[error("{repository} of registry {host} has no {wanted}")]
    NoImage {
        /// The host and port.
        host: String,
        /// The repository.
        repository: String,
        /// The tag or digest.
        wanted: String,
    },
    /// The registry sends other bytes than those that are asked for.
    #[error("registry {host} sends a {part} that does not match its digest: {reason}")]
    DigestMismatch {
        /// The host and port.
        host: String,
        /// The part of the image.
        part: String,
        /// The difference.
        reason: String,
    },
    /// The registry is busy, or limits how often it answers.
    #[error("registry {0} limits its requests (status 429): try again later")]
    TooManyRequests(String),
    /// The registry sends something else.
    #[error("registry {host}: {}", shown(reason))]
    Answer {
        /// The host and port.
        host: String,
        /// The answer.
        reason: String,
    },
    /// The pull takes too long.
    #[error("the image was not pulled within {} s", .0.as_secs())]
    Late(Duration),
    /// The options cannot be used.
    #[error("{0}")]
    Options(String),
    /// The image is refused, or cannot be written.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl ImageRegistry {
    /// Prepares connections.
    ///
    /// # Errors
    /// [`PullError::Options`] if the authorities cannot be read, or this host trusts none.
    pub fn new(options: PullOptions) -> Result<Self, PullError> {
        let tls = periapt_transport::web_client_config(options.authorities.as_deref())
            .map_err(|error| PullError::Options(format!("authorities of the registry: {error}")))?;
        Ok(Self { client: Client::new(tls, options.plain_http, options.wait), options })
    }
}
