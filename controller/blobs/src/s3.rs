//! An object store that speaks S3: its place, its credentials, the connections to it, and what goes wrong with it.

mod connect;
mod credentials;
mod failure;
mod url;

use std::{fmt, sync::Arc, time::Duration};

use object_store::{BackoffConfig, ObjectStore, RetryConfig, aws::AmazonS3Builder};

pub(crate) use self::connect::Connector;
use self::credentials::Provider;
pub use self::{
    connect::S3Timeouts,
    credentials::{CredentialsFrom, S3Credentials},
    failure::S3Failure,
    url::{S3Endpoint, S3Url},
};

/// The tries of a request after the first. Between two of them the client waits 0.1 to 2 s.
const RETRIES: usize = 4;

/// The time after its beginning in which a request is tried again. Uploads of clients wait for it.
const RETRIED_FOR: Duration = Duration::from_secs(30);

/// The region of stores that have none.
const ANY_REGION: &str = "us-east-1";

/// The place of blobs in an object store, and the way to it. Debug output shows no secret.
#[derive(Clone)]
pub struct S3Options {
    /// The bucket, and the prefix of the blobs in it.
    pub url: S3Url,
    /// The server; none: that of Amazon in the region.
    pub endpoint: Option<S3Endpoint>,
    /// The region; none: the one that stores without regions take.
    pub region: Option<String>,
    /// The authorities of the server's certificate, as PEM text; none: those that this host trusts.
    pub authority: Option<String>,
    /// The source of the credentials.
    pub credentials: CredentialsFrom,
    /// The longest waits.
    pub timeouts: S3Timeouts,
}

/// The reason why an object store's options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// The text is no place of blobs.
    #[error("{0:?} names no place of blobs: s3://BUCKET/PREFIX does")]
    Url(String),
    /// The text is no URL of a server.
    #[error("{0:?} is no URL of an object store: https://HOST:PORT is one")]
    Endpoint(String),
    /// The credentials cannot be read.
    #[error("credentials of the object store: {0}")]
    Credentials(String),
    /// The certificates of the authorities cannot be used.
    #[error("the authorities of the object store's certificate: {0}")]
    Authority(#[from] periapt_transport::CertificateError),
    /// The client of the object store cannot be made.
    #[error("the object store cannot be used: {0}")]
    Setup(#[source] object_store::Error),
}

impl S3Options {
    /// Returns the place in words, without secrets.
    pub fn place(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => format!("{} at {endpoint}", self.url),
            None => self.url.to_string(),
        }
    }

    /// Makes the client. It connects when it is used.
    pub(crate) fn client(&self) -> Result<Arc<dyn ObjectStore>, S3Error> {
        let region = self.region.as_deref().unwrap_or(ANY_REGION);
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: RETRIES,
            retry_timeout: RETRIED_FOR,
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(self.url.bucket())
            .with_region(region)
            .with_allow_http(true)
            .with_retry(retry)
            // Not all stores have the request that deletes several objects.
            .with_disable_bulk_delete(true)
            .with_credentials(Arc::new(Provider::new(self.credentials.clone())?))
            .with_http_connector(Connector::new(self.authority.as_deref(), self.timeouts)?);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.to_string());
        }
        Ok(Arc::new(builder.build().map_err(S3Error::Setup)?))
    }
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options").field("place", &self.place()).finish_non_exhaustive()
    }
}
