//! Secrets: ids, owners, readers, and changes (`docs/hook-model.md` 5.9).
//!
//! Content is [`SecretData`] in the hands of a charm or an operator, and [`Sealed`] (encrypted) in storage.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApplicationName, ModelUuid, RequestId, UnitName};

pub mod change;
pub mod content;
pub mod id;
pub mod policy;

pub use change::{AccessChange, NewSecret, Removal, SecretChanges, SecretUpdate, Tracked, Tracking};
pub use content::{Confidential, ContentError, Sealed, SecretData};
pub use id::{SecretId, SecretIdError, SecretRevision, SecretUri};
pub use policy::RotatePolicy;

/// The longest label or name, in bytes: both are lookup keys, and tables show them.
pub const MAX_LABEL_BYTES: usize = 256;

/// The longest description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// The time after which an unhandled rotation or expiry is told again, in seconds (S-9).
pub const TOLD_AGAIN_SECONDS: i64 = 300;

/// The owner of a secret. Only the owner changes the secret (S-7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretOwner {
    /// The model, on behalf of its users.
    Model,
    /// An application. Its leader manages the secret, and all its units read it.
    Application(ApplicationName),
    /// A unit.
    Unit(UnitName),
}

/// An entity to which a secret is granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum SecretReader {
    /// All units of an application.
    Application(ApplicationName),
    /// One unit.
    Unit(UnitName),
}

impl SecretReader {
    /// Returns the application, or the unit's application.
    pub fn application(&self) -> &ApplicationName {
        match self {
            Self::Application(name) => name,
            Self::Unit(unit) => unit.application(),
        }
    }

    /// Returns true if the reader is a unit, or the unit's application.
    pub fn includes(&self, unit: &UnitName) -> bool {
        match self {
            Self::Application(name) => name == unit.application(),
            Self::Unit(name) => name == unit,
        }
    }

    /// Returns Juju's tag: `application-mysql`, `unit-mysql-0`.
    pub fn tag(&self) -> String {
        match self {
            Self::Application(name) => format!("application-{name}"),
            Self::Unit(unit) => format!("unit-{}-{}", unit.application(), unit.number()),
        }
    }
}

/// Writes `mysql` or `mysql/0`.
impl fmt::Display for SecretReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application(name) => name.fmt(f),
            Self::Unit(unit) => unit.fmt(f),
        }
    }
}

impl FromStr for SecretReader {
    type Err = crate::NameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.contains('/') {
            true => text.parse().map(Self::Unit),
            false => text.parse().map(Self::Application),
        }
    }
}

impl TryFrom<String> for SecretReader {
    type Error = crate::NameError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SecretReader> for String {
    fn from(reader: SecretReader) -> String {
        reader.to_string()
    }
}

/// The secret of an event, from this unit's side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretContext {
    /// The secret.
    pub id: SecretId,
    /// The unit's own label for the secret, as its owner or as its consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The key of one revision, whose content never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretKey {
    /// The secret.
    pub id: SecretId,
    /// The revision.
    pub revision: SecretRevision,
}

/// The purpose of encrypted bytes. It is authenticated with them, so the bytes decrypt for no other purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedFor {
    /// Content of a secret.
    Content(ModelUuid, SecretId),
    /// Confidential parts of a model's journal.
    Journal(ModelUuid),
    /// The response to a request with an id, which holds a token.
    Response(RequestId),
    /// The session with which a model migrates to another controller.
    Migration(ModelUuid),
}

impl SealedFor {
    /// Returns the bytes that are authenticated with the ciphertext (associated data).
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Content(model, id) => [b"content/", model.0.as_bytes().as_slice(), id.as_bytes()].concat(),
            Self::Journal(model) => [b"journal/".as_slice(), model.0.as_bytes()].concat(),
            Self::Migration(model) => [b"migration/".as_slice(), model.0.as_bytes()].concat(),
            Self::Response(request) => [b"response/".as_slice(), request.0.as_bytes()].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_read_back_as_written() {
        for text in ["mysql", "mysql/0"] {
            assert_eq!(text.parse::<SecretReader>().unwrap().to_string(), text);
        }
        let unit: SecretReader = "my-sql/3".parse().unwrap();
        assert_eq!((unit.tag(), unit.application().as_str()), ("unit-my-sql-3".to_owned(), "my-sql"));
        assert!("a/b".parse::<SecretReader>().is_err());
    }
}
