//! SSH public keys, which a model keeps for Juju's clients. They have no effect: a sandbox has no shell to log in to.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD, engine::general_purpose::STANDARD_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The longest key, in bytes: one of RSA with 16,384 bits, and a comment.
pub const MAX_KEY_BYTES: usize = 4 << 10;

/// The key types that are accepted.
const TYPES: [&str; 7] = [
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "sk-ssh-ed25519@openssh.com",
    "ssh-ed25519",
    "ssh-rsa",
];

/// A text that is no public key. The error does not repeat the text, which may be a private key by mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid ssh key: a line of an authorized_keys file is expected, such as ssh-ed25519 AAAA... name@host"
)]
pub struct SshKeyError;

/// A public key: `TYPE BASE64 [COMMENT]`, as a line of an `authorized_keys` file without options.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SshKey(String);

impl SshKey {
    /// Returns the key as given, with single blanks between its parts.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key's comment; may be empty.
    pub fn comment(&self) -> &str {
        self.0.splitn(3, ' ').nth(2).unwrap_or_default()
    }

    /// Returns OpenSSH's fingerprint: `SHA256:` and the key's digest.
    pub fn fingerprint(&self) -> String {
        let text = self.0.split(' ').nth(1).unwrap_or_default();
        let key = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
    }

    /// Returns true if a text names the key: by its fingerprint, its comment, or the whole key.
    pub fn is_meant_by(&self, text: &str) -> bool {
        let text = text.trim();
        let same_key = |other: Self| other.fingerprint() == self.fingerprint();
        text == self.fingerprint()
            || (!text.is_empty() && text == self.comment())
            || text.parse().is_ok_and(same_key)
    }
}

impl FromStr for SshKey {
    type Err = SshKeyError;

    fn from_str(text: &str) -> Result<Self, SshKeyError> {
        let mut words = text.split_whitespace();
        let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        let looks_right = TYPES.contains(&kind) && !key.is_empty() && key.chars().all(is_base64);
        if !looks_right || text.len() > MAX_KEY_BYTES || text.trim().chars().any(char::is_control) {
            return Err(SshKeyError);
        }
        let comment: Vec<_> = words.collect();
        Ok(Self(format!("{kind} {key} {}", comment.join(" ")).trim_end().to_owned()))
    }
}

impl TryFrom<String> for SshKey {
    type Error = SshKeyError;

    fn try_from(text: String) -> Result<Self, SshKeyError> {
        text.parse()
    }
}

impl From<SshKey> for String {
    fn from(key: SshKey) -> Self {
        key.0
    }
}

impl fmt::Display for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMWk9a2vTqCdRZlJ+0SoOAmZDJAfQTvuXULOZrkN8Z4R";

    fn key(text: &str) -> SshKey {
        text.parse().unwrap()
    }

    #[test]
    fn a_key_is_meant_by_its_fingerprint_its_comment_or_itself() {
        let named = key(&format!("  {KEY}  jane doe@host\n"));
        assert_eq!(named.as_str(), format!("{KEY} jane doe@host"));
        assert_eq!(named.comment(), "jane doe@host");
        let fingerprint = named.fingerprint();
        assert_eq!(fingerprint.len(), "SHA256:".len() + 43, "{fingerprint}");
        for text in [fingerprint.as_str(), "jane doe@host", KEY, &format!("{KEY} another")] {
            assert!(named.is_meant_by(text), "{text}");
        }
        for text in ["", "jane", "SHA256:", "ssh-rsa AAAA"] {
            assert!(!named.is_meant_by(text), "{text}");
        }
        assert!(!key(KEY).is_meant_by(""), "a key without a comment is not meant by nothing");
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        let long = format!("{KEY} {}", "x".repeat(MAX_KEY_BYTES));
        for text in [
            "",
            "ssh-rsa",
            "rsa AAAA",
            "ssh-rsa AA AA\u{1b}[2J",
            "ssh-rsa -----BEGIN",
            &long,
            "ssh-rsa AA\nssh-rsa BB",
        ] {
            assert!(text.parse::<SshKey>().is_err(), "{text:?}");
        }
    }
}
