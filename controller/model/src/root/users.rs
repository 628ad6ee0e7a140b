//! Users and sessions in the root, and the indexes of sessions.

use std::sync::Arc;

use imbl::OrdSet;
use periapt_host_api::{Digest, Timestamp, UserName, user::SessionId};

use super::{Root, index::Index};
use crate::entity::{Session, User};

/// The indexes of sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionIndex {
    by_user: Index<UserName, Digest>,
    /// The sessions by the time of their end.
    ends: OrdSet<(Timestamp, Digest)>,
}

impl SessionIndex {
    /// Removes the old session from the indexes, and adds the new one.
    pub(super) fn update(&mut self, old: Option<&Arc<Session>>, new: Option<&Arc<Session>>) {
        if let Some(old) = old {
            self.by_user.remove(&old.user, &old.token);
            self.ends.remove(&(old.expires_at, old.token));
        }
        if let Some(new) = new {
            self.by_user.insert(new.user.clone(), new.token);
            self.ends.insert((new.expires_at, new.token));
        }
    }
}

impl Root {
    /// Returns a user.
    pub fn user(&self, name: &UserName) -> Option<&User> {
        self.users.get(name).map(Arc::as_ref)
    }

    /// Returns all users, by name.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values().map(Arc::as_ref)
    }

    /// Returns the session whose token has this digest. It may have ended by time.
    pub fn session(&self, token: &Digest) -> Option<&Session> {
        self.sessions.get(token).map(Arc::as_ref)
    }

    /// Returns the session with a public id.
    pub(crate) fn session_with(&self, id: &SessionId) -> Option<&Session> {
        let (token, session) = self.sessions.range(id.first_digest()..).next()?;
        (SessionId::of(token) == *id).then_some(session)
    }

    /// Returns the sessions and API tokens of a user.
    pub(crate) fn sessions_of(&self, user: &UserName) -> impl Iterator<Item = &Session> {
        self.session_index.by_user.get(user).filter_map(|token| self.session(token))
    }

    /// Returns the sessions by the time of their end.
    pub(crate) fn session_ends(&self) -> impl Iterator<Item = &(Timestamp, Digest)> {
        self.session_index.ends.iter()
    }

    /// Returns true if both states have the same users and sessions. Cheap: it compares pointers. A `false` may be
    /// wrong, a `true` never is.
    pub fn knows_the_same_users(&self, other: &Self) -> bool {
        self.users.ptr_eq(&other.users) && self.sessions.ptr_eq(&other.sessions)
    }
}
