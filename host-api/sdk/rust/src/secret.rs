//! Secrets: content for readers with a grant.

use std::{collections::BTreeMap, fmt};

use crate::bindings::periapt::charm::secrets as wit;
use crate::{Context, Error, Relation, Result, host};

/// The rotation policy of a secret. Its owner gets a secret-rotate event when rotation is due.
pub use crate::bindings::periapt::charm::secrets::RotatePolicy as Rotate;
/// The details of a secret, for its owner only.
pub use crate::bindings::periapt::charm::secrets::{Access, Details as SecretDetails, Owner};

/// A secret, by its URI. The URI may be shared in a bag: only a grant gives access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    uri: String,
}

/// The content of a secret: values by key. Debug output shows no value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretContent(BTreeMap<String, Vec<u8>>);

/// A new secret. [`add`](Self::add) adds it with the hook's commit.
#[derive(Debug)]
#[must_use = "`add` makes the secret"]
pub struct NewSecret {
    owner: Owner,
    content: SecretContent,
    said: wit::Metadata,
}

/// An update of a secret. [`apply`](Self::apply) makes it with the hook's commit. Values that are not set stay
/// unchanged.
#[derive(Debug)]
#[must_use = "`apply` makes the change"]
pub struct SecretChange {
    uri: String,
    content: SecretContent,
    said: wit::Metadata,
}

impl SecretContent {
    /// Returns one value as text.
    ///
    /// # Errors
    ///
    /// When there is no such key, or its value is no text.
    pub fn text(&self, key: &str) -> Result<&str> {
        let value = self.bytes(key).context(format!("the secret has no {key}"))?;
        std::str::from_utf8(value).context(format!("{key} of the secret"))
    }

    /// Returns one value.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// Returns the keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn pairs(self) -> Vec<(String, Vec<u8>)> {
        self.0.into_iter().collect()
    }
}

impl From<Vec<(String, Vec<u8>)>> for SecretContent {
    fn from(pairs: Vec<(String, Vec<u8>)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)
    }
}

/// The setters of new secrets and of updates.
macro_rules! said {
    () => {
        /// Sets a value. Keys have lower-case letters, digits and inner dashes, three characters at least.
        pub fn value(mut self, key: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
            self.content.0.insert(key.into(), value.as_ref().to_vec());
            self
        }

        /// Sets the owner's label, unique among the owner's secrets.
        pub fn label(mut self, label: impl Into<String>) -> Self {
            self.said.label = Some(label.into());
            self
        }

        /// Sets the description for people.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.said.description = Some(description.into());
            self
        }

        /// Sets the rotation policy.
        pub fn rotate(mut self, rotate: Rotate) -> Self {
            self.said.rotate = Some(rotate);
            self
        }

        /// Sets the expiry of the latest revision: a duration such as `24h`, or a time in RFC 3339.
        pub fn expire(mut self, expire: impl Into<String>) -> Self {
            self.said.expire = Some(expire.into());
            self
        }
    };
}

impl NewSecret {
    said!();

    pub(crate) fn new(owner: Owner) -> Self {
        Self { owner, content: SecretContent::default(), said: nothing() }
    }

    /// Adds the secret. This hook can read its content at once, other readers once the hook succeeds.
    ///
    /// # Errors
    ///
    /// When it has no value, a key or the label is refused, or it is the application's and this unit does not lead.
    pub fn add(self) -> Result<Secret> {
        let uri = host::secrets::add(self.owner, &self.content.pairs(), &self.said);
        Ok(Secret { uri: uri.map_err(Error::refused)? })
    }
}

impl SecretChange {
    said!();

    /// Applies the update. Values that differ from the latest make a new revision; without values there is none.
    ///
    /// # Errors
    ///
    /// When a key or the label is refused, or the secret is the application's and this unit does not lead. If the
    /// secret has another owner, the hook fails at its commit.
    pub fn apply(self) -> Result {
        let content = (!self.content.0.is_empty()).then(|| self.content.pairs());
        host::secrets::set(&self.uri, content.as_deref(), &self.said).map_err(Error::refused)
    }
}

impl Secret {
    /// Creates a reference from a URI, as a bag or an option of type `secret` has it.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the content of the tracked revision: the latest at this unit's first read or refresh.
    ///
    /// # Errors
    ///
    /// When there is no such secret, or this unit may not read it.
    pub fn get(&self) -> Result<SecretContent> {
        self.read(None, wit::RevisionMode::Tracked)
    }

    /// Returns the content like [`get`](Self::get), and sets this unit's own label for the secret.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and when another secret has the label.
    pub fn get_labelled(&self, label: &str) -> Result<SecretContent> {
        self.read(Some(label), wit::RevisionMode::Tracked)
    }

    /// Returns the latest content without tracking it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn peek(&self) -> Result<SecretContent> {
        self.read(None, wit::RevisionMode::Peek)
    }

    /// Returns the latest content, and tracks it from now on.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn refresh(&self) -> Result<SecretContent> {
        self.read(None, wit::RevisionMode::Refresh)
    }

    /// Returns the tracked content of the secret with this label of the unit or the owner.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_by_label(label: &str) -> Result<SecretContent> {
        let content = host::secrets::get(None, Some(label), wit::RevisionMode::Tracked);
        Ok(content.map_err(Error::refused)?.into())
    }

    /// Returns the details of the secret.
    ///
    /// # Errors
    ///
    /// When this unit does not own it, or does not lead the application that does.
    pub fn details(&self) -> Result<SecretDetails> {
        host::secrets::info(Some(&self.uri), None).map_err(Error::refused)
    }

    /// Begins an update of the secret.
    pub fn change(&self) -> SecretChange {
        SecretChange { uri: self.uri.clone(), content: SecretContent::default(), said: nothing() }
    }

    /// Grants read access to the application at the other end of a relation, for the life of the relation.
    ///
    /// # Errors
    ///
    /// When this unit may not grant the secret.
    pub fn grant(&self, relation: &Relation) -> Result {
        host::secrets::grant(&self.uri, relation.id(), None).map_err(Error::refused)
    }

    /// Grants read access to one unit at the other end.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant), and when the unit is not of that application.
    pub fn grant_unit(&self, relation: &Relation, unit: &str) -> Result {
        host::secrets::grant(&self.uri, relation.id(), Some(unit)).map_err(Error::refused)
    }

    /// Revokes the grant of an application (`mysql`) or a unit (`mysql/0`).
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant).
    pub fn revoke(&self, reader: &str) -> Result {
        host::secrets::revoke(&self.uri, reader).map_err(Error::refused)
    }

    /// Removes the secret, with all its revisions.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant).
    pub fn remove(&self) -> Result {
        host::secrets::remove(&self.uri, None).map_err(Error::refused)
    }

    /// Removes one revision, in answer to a secret-remove or secret-expired event.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant).
    pub fn remove_revision(&self, revision: u32) -> Result {
        host::secrets::remove(&self.uri, Some(revision)).map_err(Error::refused)
    }

    fn read(&self, label: Option<&str>, mode: wit::RevisionMode) -> Result<SecretContent> {
        let content = host::secrets::get(Some(&self.uri), label, mode);
        Ok(content.map_err(Error::refused)?.into())
    }
}

pub(crate) fn all() -> Result<Vec<Secret>> {
    let uris = host::secrets::ids().map_err(Error::refused)?;
    Ok(uris.into_iter().map(Secret::new).collect())
}

fn nothing() -> wit::Metadata {
    wit::Metadata { label: None, description: None, rotate: None, expire: None }
}
