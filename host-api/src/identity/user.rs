//! Users and sessions, as the API shows and takes them.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Digest, ModelUuid, Timestamp, UserName,
    access::{ControllerAccess, ModelAccess},
    password::Password,
    token::Token,
};

/// The user that every controller has from its first start.
pub const FIRST_USER: &str = "admin";

/// The longest display name of a user, and the longest name of an API token, in bytes: tables show them.
pub const MAX_DISPLAY_NAME: usize = 128;

/// The public id of a session: the first 16 hex digits of its token's digest. It proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SessionId(String);

/// A text that is no session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid session id: 16 lower-case hex digits expected, as `sessions` shows them")]
pub struct SessionIdError;

impl SessionId {
    /// The digits of an id.
    const DIGITS: usize = 16;

    /// Returns the id of the session whose token has this digest.
    pub fn of(digest: &Digest) -> Self {
        Self(digest.to_string().chars().take(Self::DIGITS).collect())
    }
}

impl SessionId {
    /// Returns the lowest digest of a token whose session has this id.
    pub fn first_digest(&self) -> Digest {
        let mut bytes = [0; 32];
        if let Some(beginning) = bytes.get_mut(..Self::DIGITS / 2) {
            // An id has hex digits only.
            let _ = hex::decode_to_slice(&self.0, beginning);
        }
        Digest::from_bytes(bytes)
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;
    fn from_str(text: &str) -> Result<Self, SessionIdError> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match digits && text.len() == Self::DIGITS {
            true => Ok(Self(text.to_owned())),
            false => Err(SessionIdError),
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;
    fn try_from(text: String) -> Result<Self, SessionIdError> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A user to make: the body of `POST /v1/users`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NewUser {
    /// The user's name.
    pub name: UserName,
    /// The name for people; empty means the user's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
}

/// The right of a user to set a password once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IssuedRegistration {
    /// The user.
    pub user: UserName,
    /// The token for `register`; the controller shows it only now.
    pub token: Token,
    /// The time from which the token is refused.
    pub expires_at: Timestamp,
}

/// The use of a registration token: the body of `POST /v1/register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UseRegistration {
    /// The registration token.
    pub token: Token,
    /// The new password.
    pub password: Password,
}

/// A login by password: the body of `POST /v1/login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PasswordLogin {
    /// The user.
    pub user: UserName,
    /// The password.
    pub password: Password,
}

/// A begun login at the controller's issuer, by the device authorization grant (RFC 8628): the answer of
/// `POST /v1/login/device`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BegunLogin {
    /// The token by which the client asks for the result; the controller shows it only now.
    pub token: Token,
    /// The page where the user approves the login.
    pub verification_uri: String,
    /// The code that the user enters there.
    pub user_code: String,
    /// The time from which the code is refused.
    pub expires_at: Timestamp,
}

/// A question for the result of a begun login: the body of `POST /v1/login/device/result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AwaitLogin {
    /// The token of the begun login.
    pub token: Token,
}

/// The result of a begun login, so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoginResult {
    /// The user has not approved it yet. The client asks again.
    Pending,
    /// The user has approved it, and the controller has opened a session.
    LoggedIn(IssuedSession),
}

/// An account at an issuer of identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExternalIdentity {
    /// The URL of the issuer.
    pub issuer: String,
    /// The issuer's own name for the account, which it never gives to another one.
    pub subject: String,
}

/// A new password: the body of `PUT /v1/users/USER/password`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NewPassword {
    /// The new password.
    pub password: Password,
}

/// A session that a login, a registration or an operator on the controller's host opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IssuedSession {
    /// The user.
    pub user: UserName,
    /// The session's public id.
    pub id: SessionId,
    /// The token for further requests; the controller shows it only now.
    pub token: Token,
    /// The time from which the session is refused.
    pub expires_at: Timestamp,
}

/// The bounds of an API token: at most the access that its user has at each moment, and no more than this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TokenScope {
    /// The highest access to models.
    pub access: ModelAccess,
    /// The models; empty means all models of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUuid>,
}

/// An API token to make: the body of `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NewApiToken {
    /// A name for people, unique among the user's tokens.
    pub name: String,
    /// The bounds of the token.
    pub scope: TokenScope,
    /// The seconds until the token ends.
    pub lifetime_seconds: u64,
}

/// A session or API token in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SessionDetails {
    /// The public id.
    pub id: SessionId,
    /// The user.
    pub user: UserName,
    /// The name of an API token; none for a session of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The bounds of an API token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<TokenScope>,
    /// The address from which the session was opened.
    pub address: String,
    /// The time of the login.
    pub created_at: Timestamp,
    /// The time from which the session is refused.
    pub expires_at: Timestamp,
    /// True for the session of the request itself.
    pub current: bool,
}

/// A user in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UserDetails {
    /// The user's name.
    pub name: UserName,
    /// The name for people.
    pub display_name: String,
    /// The access to the controller; none after the login was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<ControllerAccess>,
    /// The user who made this one.
    pub created_by: UserName,
    /// The time of the creation.
    pub created_at: Timestamp,
    /// The time of the last login; none if there was no login yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login: Option<Timestamp>,
    /// True if the user may not log in for now.
    pub disabled: bool,
    /// True if the user has set a password, or if an external user has logged in.
    pub registered: bool,
}

/// A user of a model in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelUser {
    /// The user's name.
    pub name: UserName,
    /// The name for people.
    pub display_name: String,
    /// The granted access.
    pub access: ModelAccess,
    /// The time of the user's last login; none if there was no login yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_the_beginning_of_its_tokens_digest() {
        let id = SessionId::of(&Digest::of(b"x"));
        assert_eq!(id.to_string().parse::<SessionId>(), Ok(id.clone()));
        assert!(Digest::of(b"x").to_string().starts_with(&id.to_string()));
        assert!(id.first_digest() <= Digest::of(b"x"));
        assert_eq!(SessionId::of(&id.first_digest()), id);
        for bad in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdefa"] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }
}
