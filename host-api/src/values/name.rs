//! Names that people choose, each parsed once, at the edge.

use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest name that is accepted, in bytes: names are keys in the store, in paths and in tables.
pub const MAX_NAME_LENGTH: usize = 128;

/// A text that is not a name of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} name {text:?}: {reason}")]
pub struct NameError {
    /// What was wanted, such as `application`.
    pub kind: &'static str,
    /// What was given, cut to a readable length.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl NameError {
    fn new(kind: &'static str, text: &str, reason: &'static str) -> Self {
        Self { kind, text: text.chars().take(MAX_NAME_LENGTH).collect(), reason }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses a name, saying what is wrong with a text that is none.
            pub fn new(text: &str) -> Result<Self, NameError> {
                if text.is_empty() {
                    return Err(NameError::new($kind, text, "it is empty"));
                }
                if text.len() > MAX_NAME_LENGTH {
                    return Err(NameError::new($kind, text, "it is longer than 128 bytes"));
                }
                $check(text).map_err(|reason| NameError::new($kind, text, reason))?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name! {
    /// An application: lower-case words of letters and digits joined by dashes; it starts with a letter, and
    /// no word after a dash is only a number (`app-1` would read as a unit's tag).
    ApplicationName, "application", dashed_words
}
name! {
    /// An endpoint of a charm, as its metadata declares it.
    EndpointName, "endpoint", loose_word
}
name! {
    /// The protocol that two endpoints share.
    InterfaceName, "interface", loose_word
}
name! {
    /// A storage of a charm, as its metadata declares it; the rule is that of applications.
    StorageName, "storage", dashed_words
}
name! {
    /// A resource of a charm, as its metadata declares it; a directory's name in the sandbox, and a part of URLs.
    ResourceName, "resource", host_word
}
name! {
    /// A model: lower-case letters, digits and inner dashes.
    ModelName, "model", lower_word
}
name! {
    /// A space, a named set of subnets: lower-case letters, digits and inner dashes.
    SpaceName, "space", lower_word
}
name! {
    /// An agent's name, unique in its controller.
    AgentName, "agent", host_word
}
name! {
    /// A word by which agents are told apart.
    TagName, "tag", host_word
}
name! {
    /// A cloud, as Juju's clients call it.
    CloudName, "cloud", host_word
}
name! {
    /// A credential of a cloud, as Juju's clients call it.
    CredentialName, "credential", host_word
}
name! {
    /// A person who drives the controller.
    UserName, "user", host_word
}

fn dashed_words(text: &str) -> Result<(), &'static str> {
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err("it must start with a lower-case letter");
    }
    for (index, word) in text.split('-').enumerate() {
        if word.is_empty() {
            return Err("dashes stand between words");
        }
        if !word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            return Err("only lower-case letters, digits and dashes are allowed");
        }
        if index > 0 && word.bytes().all(|b| b.is_ascii_digit()) {
            return Err("a word after a dash must hold a letter");
        }
    }
    Ok(())
}

fn lower_word(text: &str) -> Result<(), &'static str> {
    if text.starts_with('-') || text.ends_with('-') {
        return Err("dashes stand between words");
    }
    match text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        true => Ok(()),
        false => Err("only lower-case letters, digits and dashes are allowed"),
    }
}

fn loose_word(text: &str) -> Result<(), &'static str> {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err("it must start with a letter");
    }
    match text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        true => Ok(()),
        false => Err("only letters, digits, dashes and underscores are allowed"),
    }
}

fn host_word(text: &str) -> Result<(), &'static str> {
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("it must start with a letter or digit");
    }
    match text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
        true => Ok(()),
        false => Err("only letters, digits, dashes, dots and underscores are allowed"),
    }
}

/// A unit: `APPLICATION/NUMBER`. Units of one application sort by number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct UnitName {
    application: ApplicationName,
    number: u32,
}

impl UnitName {
    /// The unit of an application with a number.
    pub fn new(application: ApplicationName, number: u32) -> Self {
        Self { application, number }
    }

    /// The application that it belongs to.
    pub fn application(&self) -> &ApplicationName {
        &self.application
    }

    /// Its number in the application; never reused.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl FromStr for UnitName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = |reason| NameError::new("unit", text, reason);
        let (application, number) =
            text.split_once('/').ok_or_else(|| wrong("it must be APPLICATION/NUMBER"))?;
        let canonical =
            number == "0" || (!number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit()));
        let number =
            number.parse().ok().filter(|_| canonical).ok_or_else(|| wrong("no number after the slash"))?;
        let application = ApplicationName::new(application).map_err(|e| wrong(e.reason))?;
        Ok(Self { application, number })
    }
}

impl TryFrom<String> for UnitName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<UnitName> for String {
    fn from(name: UnitName) -> String {
        name.to_string()
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.application, self.number)
    }
}

impl fmt::Debug for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn application_names_are_words_joined_by_dashes() {
        for good in ["mysql", "my-sql", "a1", "a-1b", "k8s-operator"] {
            assert!(ApplicationName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "a-1", "1a", "A", "a_b", "a/0", "ä", &"a".repeat(129)] {
            assert!(ApplicationName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unit_names_are_read_back_as_written_and_sort_by_number() {
        let (two, ten): (UnitName, UnitName) = ("a/2".parse().unwrap(), "a/10".parse().unwrap());
        assert!(two < ten);
        assert_eq!(ten.to_string(), "a/10");
        for bad in ["a", "a/", "a/01", "a/+1", "a/-1", "a/4294967296", "/1", "a/1/2", "A/1"] {
            assert!(bad.parse::<UnitName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_error_says_what_was_wrong_with_the_text() {
        let error = "A/1".parse::<UnitName>().unwrap_err().to_string();
        assert_eq!(error, "invalid unit name \"A/1\": it must start with a lower-case letter");
    }
}
