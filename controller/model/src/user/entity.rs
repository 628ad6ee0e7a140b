//! The entities of users: accounts, sessions, and grants.

use std::fmt;

use periapt_host_api::{
    Digest, Timestamp, UserName,
    access::{ControllerAccess, ModelAccess},
    offer::OfferAccess,
    user::{ExternalIdentity, TokenScope},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A user of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct User {
    /// The user's name, unique in the controller.
    pub name: UserName,
    /// The user's id. A later user of the same name has another one, so that no grant or session passes on.
    pub uuid: Uuid,
    /// The name for people.
    pub display_name: String,
    /// The access to the controller; none after the login was revoked.
    pub access: Option<ControllerAccess>,
    /// True if the user may not log in for now.
    pub disabled: bool,
    /// The hash of the password; none until the user has registered.
    pub password: Option<PasswordHash>,
    /// The pending right to set a password.
    pub registration: Option<Registration>,
    /// The user who made this one.
    pub created_by: UserName,
    /// The time of the creation.
    pub created_at: Timestamp,
    /// The time of the last login.
    pub last_login: Option<Timestamp>,
    /// The account of an external user at the issuer; none until the first login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<ExternalIdentity>,
}

impl User {
    /// Returns true if the user is not disabled and has access to the controller.
    pub fn may_log_in(&self) -> bool {
        !self.disabled && self.access.is_some()
    }
}

/// The hash of a password, in the PHC string format. Debug output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(pub String);

/// Hides the hash: debug output may reach logs.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

/// The right to set a user's password once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Registration {
    /// The digest of the registration token.
    pub token: Digest,
    /// The time from which the token is refused.
    pub expires_at: Timestamp,
}

/// A session of a user, or an API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Session {
    /// The digest of the token.
    pub token: Digest,
    /// The user.
    pub user: UserName,
    /// The user's id. The session of an earlier user of the same name is refused.
    pub user_uuid: Uuid,
    /// The session of a person, or an API token.
    pub kind: SessionKind,
    /// The address from which the session was opened.
    pub address: String,
    /// The time of the login.
    pub created_at: Timestamp,
    /// The time from which the session is refused.
    pub expires_at: Timestamp,
}

/// The kinds of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionKind {
    /// A person's session.
    Login,
    /// A program's API token.
    Api {
        /// The name for people, unique among the user's tokens.
        name: String,
        /// The bounds of the token.
        scope: TokenScope,
    },
}

/// The access to a model that a user was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelGrant {
    /// The user.
    pub user: UserName,
    /// The user's id. The grant of an earlier user of the same name has no effect.
    pub user_uuid: Uuid,
    /// The access level.
    pub access: ModelAccess,
}

/// The access to an offer that a user was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OfferGrant {
    /// The user's id. The grant of an earlier user of the same name has no effect.
    pub user_uuid: Uuid,
    /// The access level.
    pub access: OfferAccess,
}
