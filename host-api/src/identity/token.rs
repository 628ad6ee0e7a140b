//! Tokens: random secrets that prove an identity. The controller stores only their digests.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// The bytes of a token's secret.
pub const TOKEN_BYTES: usize = 32;

/// The purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    /// Proves a session of a user, made by a login.
    Session,
    /// Proves a program that acts for a user, within a scope.
    Api,
    /// Lets a new user set a password, once.
    Registration,
    /// Lets an agent join, once.
    Join,
    /// Proves the client that began a login at the issuer.
    DeviceLogin,
}

impl TokenKind {
    const ALL: [Self; 5] = [Self::Session, Self::Api, Self::Registration, Self::Join, Self::DeviceLogin];

    fn letter(self) -> char {
        match self {
            Self::Session => 's',
            Self::Api => 'a',
            Self::Registration => 'r',
            Self::Join => 'j',
            Self::DeviceLogin => 'd',
        }
    }
}

/// A text that is no token. The error does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid token: pt_KIND_TEXT expected, as the controller gave it")]
pub struct TokenError;

/// A token: `pt_KIND_TEXT`, where KIND is `s`, `a`, `r`, `j` or `d`, and TEXT is base64url of 32 random bytes. Debug output
/// does not show the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Token {
    kind: TokenKind,
    secret: [u8; TOKEN_BYTES],
}

impl Token {
    /// Creates a token of random bytes.
    pub fn new(kind: TokenKind, secret: [u8; TOKEN_BYTES]) -> Self {
        Self { kind, secret }
    }

    /// Returns the token's purpose.
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// Returns the SHA-256 of the kind and the secret, by which the controller knows the token. A plain digest is
    /// enough: 32 random bytes cannot be guessed.
    pub fn digest(&self) -> Digest {
        Digest::of(self.reveal().as_bytes())
    }

    /// Returns the token as text. The caller keeps it out of logs, errors and arguments of programs.
    pub fn reveal(&self) -> String {
        format!("pt_{}_{}", self.kind.letter(), URL_SAFE_NO_PAD.encode(self.secret))
    }
}

impl FromStr for Token {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let read = || {
            let (kind, secret) = text.strip_prefix("pt_")?.split_once('_')?;
            let kind = TokenKind::ALL.into_iter().find(|known| kind == known.letter().to_string())?;
            let secret = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
            Some(Self { kind, secret })
        };
        read().ok_or(TokenError)
    }
}

impl TryFrom<String> for Token {
    type Error = TokenError;
    fn try_from(text: String) -> Result<Self, TokenError> {
        text.parse()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.reveal()
    }
}

/// Hides the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:?})", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_as_written_and_is_never_shown() {
        for kind in TokenKind::ALL {
            let token = Token::new(kind, [0xfb; TOKEN_BYTES]);
            let text = token.reveal();
            assert!(text.starts_with(&format!("pt_{}_", kind.letter())) && text.len() == 48, "{text}");
            assert_eq!(text.parse::<Token>().as_ref(), Ok(&token));
            assert_eq!(format!("{token:?}"), format!("Token({kind:?})"));
        }
    }

    #[test]
    fn tokens_of_different_kinds_have_different_digests() {
        let digest = |kind| Token::new(kind, [1; TOKEN_BYTES]).digest();
        assert_ne!(digest(TokenKind::Session), digest(TokenKind::Registration));
    }

    #[test]
    fn other_texts_are_refused_without_being_repeated() {
        let good = Token::new(TokenKind::Join, [7; TOKEN_BYTES]).reveal();
        for bad in ["", "pt_s_", "pt_x_AAAA", &good[..good.len() - 1], &format!("{good}A"), &good[3..]] {
            let error = bad.parse::<Token>().unwrap_err().to_string();
            assert!(bad.len() < 6 || !error.contains(bad), "{error}");
        }
    }
}
