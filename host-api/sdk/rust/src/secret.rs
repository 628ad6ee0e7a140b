//! Secrets: content that only those read who were granted it.

use std::{collections::BTreeMap, fmt};

use crate::bindings::periapt::charm::secrets as wit;
use crate::{Context, Error, Relation, Result, host};

/// How often a secret is to be rotated: its owner is told so by a secret-rotate event.
pub use crate::bindings::periapt::charm::secrets::RotatePolicy as Rotate;
/// What only the owner of a secret knows of it.
pub use crate::bindings::periapt::charm::secrets::{Access, Details as SecretDetails, Owner};

/// A secret, by its URI: safe to hand on in a bag, as the URI opens nothing for who was not granted it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    uri: String,
}

/// What a secret holds: values by key. Debug output shows no value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretContent(BTreeMap<String, Vec<u8>>);

/// A secret that is to be made. [`add`](Self::add) makes it, with the hook's commit.
#[derive(Debug)]
#[must_use = "`add` makes the secret"]
pub struct NewSecret {
    owner: Owner,
    content: SecretContent,
    said: wit::Metadata,
}

/// A change of a secret. [`apply`](Self::apply) makes it, with the hook's commit; what is not said stays.
#[derive(Debug)]
#[must_use = "`apply` makes the change"]
pub struct SecretChange {
    uri: String,
    content: SecretContent,
    said: wit::Metadata,
}

impl SecretContent {
    /// One value as text.
    ///
    /// # Errors
    ///
    /// When there is no such key, or its value is no text.
    pub fn text(&self, key: &str) -> Result<&str> {
        let value = self.bytes(key).context(format!("the secret has no {key}"))?;
        std::str::from_utf8(value).context(format!("{key} of the secret"))
    }

    /// One value.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// The keys.
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

/// What is said of a new secret and of one that changes.
macro_rules! said {
    () => {
        /// A value; keys are of lower-case letters, digits and inner dashes, three at least.
        pub fn value(mut self, key: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
            self.content.0.insert(key.into(), value.as_ref().to_vec());
            self
        }

        /// The owner's name for it, unique among the owner's secrets.
        pub fn label(mut self, label: impl Into<String>) -> Self {
            self.said.label = Some(label.into());
            self
        }

        /// What it is for, for people.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.said.description = Some(description.into());
            self
        }

        /// How often it is to be rotated.
        pub fn rotate(mut self, rotate: Rotate) -> Self {
            self.said.rotate = Some(rotate);
            self
        }

        /// When its latest revision expires: a duration such as `24h`, or a time in RFC 3339.
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

    /// Makes it. Its content is readable in this hook at once, and there for others when the hook succeeds.
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

    /// Changes it. Values that differ from the latest make a new revision; there is none without values.
    ///
    /// # Errors
    ///
    /// When a key or the label is refused, or it is the application's and this unit does not lead. That a secret is
    /// another's fails the hook when it commits.
    pub fn apply(self) -> Result {
        let content = (!self.content.0.is_empty()).then(|| self.content.pairs());
        host::secrets::set(&self.uri, content.as_deref(), &self.said).map_err(Error::refused)
    }
}

impl Secret {
    /// One by its URI, as a bag or an option of type `secret` has it.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }

    /// Its URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The content that this unit tracks: the latest when it first read it, or refreshed.
    ///
    /// # Errors
    ///
    /// When there is no such secret, or this unit may not read it.
    pub fn get(&self) -> Result<SecretContent> {
        self.read(None, wit::RevisionMode::Tracked)
    }

    /// The same, and from now on this unit names it by a label of its own.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and when another secret has the label.
    pub fn get_labelled(&self, label: &str) -> Result<SecretContent> {
        self.read(Some(label), wit::RevisionMode::Tracked)
    }

    /// The latest content, just this time.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn peek(&self) -> Result<SecretContent> {
        self.read(None, wit::RevisionMode::Peek)
    }

    /// The latest content, from now on.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn refresh(&self) -> Result<SecretContent> {
        self.read(None, wit::RevisionMode::Refresh)
    }

    /// The content that this unit tracks of the secret that it, or its owner, names so.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_by_label(label: &str) -> Result<SecretContent> {
        let content = host::secrets::get(None, Some(label), wit::RevisionMode::Tracked);
        Ok(content.map_err(Error::refused)?.into())
    }

    /// What its owner knows of it.
    ///
    /// # Errors
    ///
    /// When this unit does not own it, or does not lead the application that does.
    pub fn details(&self) -> Result<SecretDetails> {
        host::secrets::info(Some(&self.uri), None).map_err(Error::refused)
    }

    /// Begins a change of it.
    pub fn change(&self) -> SecretChange {
        SecretChange { uri: self.uri.clone(), content: SecretContent::default(), said: nothing() }
    }

    /// Lets the application at the other end of a relation read it, for as long as the relation is there.
    ///
    /// # Errors
    ///
    /// When it is not this unit's to grant.
    pub fn grant(&self, relation: &Relation) -> Result {
        host::secrets::grant(&self.uri, relation.id(), None).map_err(Error::refused)
    }

    /// Lets one unit at the other end read it.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant), and when the unit is not of that application.
    pub fn grant_unit(&self, relation: &Relation, unit: &str) -> Result {
        host::secrets::grant(&self.uri, relation.id(), Some(unit)).map_err(Error::refused)
    }

    /// Takes a grant to an application (`mysql`) or a unit (`mysql/0`) back.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant).
    pub fn revoke(&self, reader: &str) -> Result {
        host::secrets::revoke(&self.uri, reader).map_err(Error::refused)
    }

    /// Removes it, with all its revisions.
    ///
    /// # Errors
    ///
    /// As [`grant`](Self::grant).
    pub fn remove(&self) -> Result {
        host::secrets::remove(&self.uri, None).map_err(Error::refused)
    }

    /// Removes one revision of it: what a secret-remove or secret-expired event is answered with.
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
