//! The access levels of users to the controller and to models. Those to offers are in [`crate::offer`].

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text that is not a valid access level for the expected subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid access level {text:?} for {subject}; known are {known}")]
pub struct AccessError {
    text: String,
    subject: &'static str,
    known: &'static str,
}

macro_rules! levels {
    ($(#[$doc:meta])* $name:ident of $subject:literal {
        $($(#[$level_doc:meta])* $level:ident = $text:literal),+ $(,)?
    } known $known:literal) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$level_doc])* $level,)+
        }

        impl $name {
            /// All levels, the lowest first.
            pub const ALL: &[Self] = &[$(Self::$level),+];

            /// Returns the level in its written form.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$level => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = AccessError;
            fn from_str(text: &str) -> Result<Self, AccessError> {
                let wrong = || {
                    let text = text.chars().take(64).collect();
                    AccessError { text, subject: $subject, known: $known }
                };
                Self::ALL.iter().copied().find(|level| level.as_str() == text).ok_or_else(wrong)
            }
        }
    };
}

levels! {
    /// The access levels of users to the controller; each includes those before it.
    ControllerAccess of "a controller" {
        /// May log in.
        Login = "login",
        /// May do everything: manages users and models, and administers every model.
        Superuser = "superuser",
    } known "login and superuser"
}

levels! {
    /// The access levels of users to a model; each includes those before it.
    ModelAccess of "a model" {
        /// May read the model.
        Read = "read",
        /// May change the model.
        Write = "write",
        /// May do everything, including granting access and reading secrets.
        Admin = "admin",
    } known "read, write and admin"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_back_as_written_and_include_lower_ones() {
        for level in ModelAccess::ALL {
            assert_eq!(level.to_string().parse::<ModelAccess>().as_ref(), Ok(level));
        }
        assert!(ModelAccess::Read < ModelAccess::Write && ModelAccess::Write < ModelAccess::Admin);
        assert!(ControllerAccess::Login < ControllerAccess::Superuser);
        let error = "consume".parse::<ModelAccess>().unwrap_err().to_string();
        assert_eq!(error, "invalid access level \"consume\" for a model; known are read, write and admin");
    }
}
