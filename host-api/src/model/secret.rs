//! Secrets as all sides name them: ids, owners, who reads them, when they change (`hook-model.md` 5.9).
//!
//! Content is [`SecretData`] where a charm or a person has it, and [`Sealed`] wherever it is kept.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApplicationName, ModelUuid, UnitName};

pub mod change;
pub mod content;
pub mod id;
pub mod policy;

pub use change::{AccessChange, NewSecret, Removal, SecretChanges, SecretUpdate, Tracked, Tracking};
pub use content::{Confidential, ContentError, Sealed, SecretData};
pub use id::{SecretId, SecretIdError, SecretRevision, SecretUri};
pub use policy::RotatePolicy;

/// The longest label or name, in bytes: both are looked up and shown in tables.
pub const MAX_LABEL_BYTES: usize = 256;

/// The longest description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// How long a rotation or expiry that nobody acted upon waits to be told again, in seconds (S-9).
pub const TOLD_AGAIN_SECONDS: i64 = 300;

/// Whose a secret is: only the owner changes it (S-7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretOwner {
    /// The model's users.
    Model,
    /// An application; its leader manages it, and all its units read it.
    Application(ApplicationName),
    /// A unit.
    Unit(UnitName),
}

/// Who a secret is granted to.
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
    /// The application that it is, or belongs to.
    pub fn application(&self) -> &ApplicationName {
        match self {
            Self::Application(name) => name,
            Self::Unit(unit) => unit.application(),
        }
    }

    /// Whether a unit is meant by it.
    pub fn includes(&self, unit: &UnitName) -> bool {
        match self {
            Self::Application(name) => name == unit.application(),
            Self::Unit(name) => name == unit,
        }
    }

    /// As Juju's tags name it: `application-mysql`, `unit-mysql-0`.
    pub fn tag(&self) -> String {
        match self {
            Self::Application(name) => format!("application-{name}"),
            Self::Unit(unit) => format!("unit-{}-{}", unit.application(), unit.number()),
        }
    }
}

/// `mysql` or `mysql/0`.
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

/// The secret that an event is about, as this unit knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretContext {
    /// The secret.
    pub id: SecretId,
    /// The unit's own label for it: the owner's, or the one that it consumes it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// One revision to be read, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretKey {
    /// The secret.
    pub id: SecretId,
    /// Its revision.
    pub revision: SecretRevision,
}

/// What sealed bytes are of; they open for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedFor {
    /// Content of a secret.
    Content(ModelUuid, SecretId),
    /// What a hook was told in confidence, in a model's journal.
    Journal(ModelUuid),
}

impl SealedFor {
    /// The bytes that are bound into a seal.
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Content(model, id) => [b"content/", model.0.as_bytes().as_slice(), id.as_bytes()].concat(),
            Self::Journal(model) => [b"journal/".as_slice(), model.0.as_bytes()].concat(),
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
