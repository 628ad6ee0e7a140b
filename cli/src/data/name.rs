//! Names of controllers, which this client gives them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A controller's name. It is a directory's name, and `CONTROLLER:MODEL` must be unambiguous.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ControllerName(String);

/// An invalid controller name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid controller name {0:?}: it must start with a letter or digit and hold only these, dashes, dots \
     and underscores, 64 at most"
)]
pub(crate) struct ControllerNameError(String);

impl ControllerName {
    /// Returns the name as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ControllerName {
    type Err = ControllerNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let holds = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
        match starts && holds && text.len() <= 64 {
            true => Ok(Self(text.to_owned())),
            false => Err(ControllerNameError(text.chars().take(64).collect())),
        }
    }
}

impl TryFrom<String> for ControllerName {
    type Error = ControllerNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ControllerName> for String {
    fn from(name: ControllerName) -> Self {
        name.0
    }
}

impl fmt::Display for ControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_a_directory_and_stand_before_a_colon() {
        for good in ["local", "prod-1", "eu.west_2", "0"] {
            assert!(good.parse::<ControllerName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a:b", "-a", "a b", &"a".repeat(65)] {
            assert!(bad.parse::<ControllerName>().is_err(), "{bad}");
        }
    }
}
