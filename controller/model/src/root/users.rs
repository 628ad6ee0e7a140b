//! Users and sessions in the root, and their indexes.

use std::{collections::BTreeSet, sync::Arc};

use imbl::{OrdMap, OrdSet, ordmap::DiffItem};
use periapt_host_api::{Digest, Timestamp, UserName, user::SessionId};

use super::{Root, index::Index};
use crate::entity::{Session, User};

/// The index of users.
#[derive(Debug, Clone, Default)]
pub(super) struct UserIndex {
    /// The users with a pending registration, by the digest of its token.
    registering: OrdMap<Digest, UserName>,
}

impl UserIndex {
    /// Removes the old user from the index, and adds the new one.
    pub(super) fn update(&mut self, old: Option<&Arc<User>>, new: Option<&Arc<User>>) {
        let pending = |user: &Arc<User>| user.registration.map(|registration| registration.token);
        if let Some(token) = old.and_then(pending) {
            self.registering.remove(&token);
        }
        if let Some((token, user)) = new.and_then(|user| Some((pending(user)?, user))) {
            self.registering.insert(token, user.name.clone());
        }
    }
}

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

    /// Returns the number of users.
    pub(crate) fn user_count(&self) -> usize {
        self.users.len()
    }

    /// Returns the user whose pending registration has a token of this digest.
    pub(crate) fn registering(&self, token: &Digest) -> Option<&User> {
        self.user(self.user_index.registering.get(token)?)
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

    /// Returns the users who may have lost a right from this state to a later one: those who were removed or whose
    /// access changed, and those whose sessions ended. Shared parts of the maps are skipped, so the cost depends on the
    /// size of the difference.
    pub fn users_who_lost(&self, newer: &Self) -> BTreeSet<UserName> {
        let standing = |user: &User| (user.uuid, user.access, user.disabled);
        let users = self.users.diff(&newer.users).filter_map(|change| match change {
            DiffItem::Update { old: (name, old), new: (_, new) } if standing(old) != standing(new) => {
                Some(name)
            }
            DiffItem::Remove(name, _) => Some(name),
            DiffItem::Update { .. } | DiffItem::Add(..) => None,
        });
        let sessions = self.sessions.diff(&newer.sessions).filter_map(|change| match change {
            DiffItem::Update { old: (_, session), .. } | DiffItem::Remove(_, session) => Some(&session.user),
            DiffItem::Add(..) => None,
        });
        users.chain(sessions).cloned().collect()
    }
}
