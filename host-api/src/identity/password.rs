//! Passwords on their way to the controller.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest password, in bytes. It bounds the input of the hash.
pub const MAX_PASSWORD_BYTES: usize = 1_024;

/// A text that is no password. The error does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a password has 1 to {MAX_PASSWORD_BYTES} bytes, and no line breaks or NULs")]
pub struct PasswordError;

/// A password in clear text. Debug output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Password(String);

impl Password {
    /// Returns the text. The caller keeps it out of logs, errors and arguments of programs.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Password {
    type Error = PasswordError;
    fn try_from(text: String) -> Result<Self, PasswordError> {
        let fits = !text.is_empty() && text.len() <= MAX_PASSWORD_BYTES;
        match fits && !text.contains(['\n', '\r', '\0']) {
            true => Ok(Self(text)),
            false => Err(PasswordError),
        }
    }
}

impl From<Password> for String {
    fn from(password: Password) -> Self {
        password.0
    }
}

/// Hides the password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line_within_bounds_and_is_never_shown() {
        let password = Password::try_from("correct horse".to_owned()).unwrap();
        assert_eq!(password.reveal(), "correct horse");
        assert_eq!(format!("{password:?}"), "Password(..)");
        for bad in ["", "a\nb", "a\0", &"x".repeat(MAX_PASSWORD_BYTES + 1)] {
            let error = Password::try_from(bad.to_owned()).unwrap_err().to_string();
            assert!(bad.len() < 3 || !error.contains(bad), "{error}");
        }
    }
}
