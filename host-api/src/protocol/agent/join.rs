//! The joining of agents: the admission of a name, the token, and the certificate.

use std::{str::FromStr, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, Digest, Timestamp,
    token::{Token, TokenKind},
};

/// The longest validity of a join token.
pub const MAX_JOIN_VALIDITY: Duration = Duration::from_secs(30 * 86_400);

/// The most agents that join with one token of a pool.
pub const MAX_POOL_USES: u32 = 1_000;

/// The admission of a pool of agents, by an operator: of names that begin with the pool's name and a hyphen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PoolAdmission {
    /// The pool's name.
    pub pool: AgentName,
    /// The digest of a join token that the operator's client has made.
    pub token: Digest,
    /// The seconds for which the token is valid.
    pub valid_for: u64,
    /// The number of agents that may join with the token.
    pub uses: u32,
}

/// The admission of an agent, by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Admission {
    /// The agent's name.
    pub agent: AgentName,
    /// The digest of a join token that the operator's client has made. The controller never sees the token before the
    /// agent joins.
    pub token: Digest,
    /// The seconds for which the token is valid.
    pub valid_for: u64,
    /// True if an agent of this name that has joined already may be replaced.
    #[serde(default)]
    pub again: bool,
}

/// The request of an agent's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CertificateRequest {
    /// A certificate signing request (PKCS #10) as PEM text, signed by the agent's key.
    pub request: String,
    /// The join token; none once the agent has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
}

/// An agent's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct IssuedCertificate {
    /// The certificate as PEM text.
    pub certificate: String,
    /// The certificate of the controller's authority as PEM text.
    pub authority: String,
    /// The time of its issue.
    pub issued_at: Timestamp,
    /// The end of its validity.
    pub expires_at: Timestamp,
}

/// The text by which an agent joins, `TOKEN.DIGEST`: a join token, and the digest of the certificate of the controller's
/// authority, by which the agent knows the controller before it shows the token. Debug output does not show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinText {
    /// The token.
    pub token: Token,
    /// The SHA-256 digest of the certificate of the controller's authority.
    pub authority: Digest,
}

/// A text by which no agent can join. The error does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid join token: pt_j_TEXT.DIGEST expected, as `agent-token` prints it")]
pub struct JoinTextError;

impl JoinText {
    /// Returns the text, which is secret.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.token.reveal(), URL_SAFE_NO_PAD.encode(self.authority.as_bytes()))
    }
}

impl FromStr for JoinText {
    type Err = JoinTextError;

    fn from_str(text: &str) -> Result<Self, JoinTextError> {
        let (token, digest) = text.trim().split_once('.').ok_or(JoinTextError)?;
        let token: Token = token.parse().map_err(|_| JoinTextError)?;
        let digest = URL_SAFE_NO_PAD.decode(digest).ok().and_then(|digest| digest.try_into().ok());
        match (token.kind(), digest) {
            (TokenKind::Join, Some(digest)) => Ok(Self { token, authority: Digest::from_bytes(digest) }),
            _ => Err(JoinTextError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::TOKEN_BYTES;

    #[test]
    fn a_join_text_is_read_back_as_written_and_is_never_shown() {
        let token = Token::new(TokenKind::Join, [0xfe; TOKEN_BYTES]);
        let text = JoinText { token, authority: Digest::of(b"authority") };
        assert_eq!(format!(" {}\n", text.reveal()).parse::<JoinText>().as_ref(), Ok(&text));
        assert!(!format!("{text:?}").contains(&text.token.reveal()));
        let session = Token::new(TokenKind::Session, [1; TOKEN_BYTES]).reveal();
        for wrong in ["", "pt_j_AAAA", &text.token.reveal(), &format!("{session}.AAAA")] {
            let error = wrong.parse::<JoinText>().unwrap_err().to_string();
            assert!(wrong.len() < 10 || !error.contains(wrong), "{error}");
        }
    }
}
