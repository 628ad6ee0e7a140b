//! The uploaders of a content: the users who may use it by its digest.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entity::User;

/// The most users who are remembered for one content. They are part of its entity.
const MAX_UPLOADERS: usize = 256;

/// The users who uploaded a content, by their ids, the latest last. After `MAX_UPLOADERS` the first is forgotten, and
/// uploads the content again to use it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uploaders(Vec<Uuid>);

impl Uploaders {
    /// Returns the uploaders with these ids.
    pub fn new(users: impl IntoIterator<Item = Uuid>) -> Self {
        Self(users.into_iter().collect())
    }

    /// Returns true if no uploader is known, as of a content that an earlier version stored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a user has uploaded the content.
    pub fn has(&self, user: &User) -> bool {
        self.0.contains(&user.uuid)
    }

    /// Returns the uploaders with one more.
    pub(crate) fn with(&self, user: &User) -> Self {
        let mut users = self.0.clone();
        users.push(user.uuid);
        users.drain(..users.len().saturating_sub(MAX_UPLOADERS));
        Self(users)
    }
}
