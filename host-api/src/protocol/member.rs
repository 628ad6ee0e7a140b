//! The joining of a controller to those of one log: its admission, and the keys that it is given.

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Level, Timestamp, token::Token};

/// The longest validity of the token of a controller: who holds it is given all keys.
pub const MAX_MEMBER_JOIN_VALIDITY: Duration = Duration::from_secs(24 * 60 * 60);

/// The admission of a controller, by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemberAdmission {
    /// The controller's name among those of the log.
    pub member: String,
    /// The digest of a join token that the operator's client has made.
    pub token: Digest,
    /// The seconds for which the token is valid.
    pub valid_for: u64,
}

/// The request of a controller that joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemberJoin {
    /// The controller's name.
    pub member: String,
    /// The join token.
    pub token: Token,
    /// The highest level that its program knows.
    #[serde(default)]
    pub level: Level,
    /// The time of its machine's clock; none from programs of earlier versions.
    #[serde(default)]
    pub now: Option<Timestamp>,
}

/// The keys, the log and the blobs of a set of controllers, for one that joins. Debug output shows no key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemberKeys {
    /// The certificate of the authority, as PEM text.
    pub authority: String,
    /// The key of the authority, as PEM text.
    pub authority_key: String,
    /// The key of secrets, in base64.
    pub secret_key: String,
    /// The log.
    pub log: LogPlace,
    /// The object store that has the blobs; none: each controller has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<BlobsPlace>,
}

/// The place of blobs in an object store, with the credentials to it. Debug output shows no credentials.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BlobsPlace {
    /// The bucket and the prefix: `s3://BUCKET/PREFIX`.
    pub url: String,
    /// The URL of the server; none: Amazon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The region; none: the one that stores without regions take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The certificates of the server's authorities, as PEM text; none: those that the host trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// The text of a file of credentials, as Amazon's tools write it.
    pub credentials: String,
}

/// The place of a log, with the certificates to reach it. Debug output shows no key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LogPlace {
    /// The URL, such as `etcd://HOST:2379,HOST:2379`.
    pub url: String,
    /// The certificate of the log's authority, as PEM text; none: the connection is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// The certificate of controllers for the log and its key, as PEM texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<(String, String)>,
}

impl fmt::Debug for MemberKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberKeys")
            .field("log", &self.log)
            .field("blobs", &self.blobs)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BlobsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobsPlace").field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogPlace").field("url", &self.url).finish_non_exhaustive()
    }
}
