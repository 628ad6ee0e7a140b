//! Names of applications, units, models and the like. Each is parsed once, at the edge.

use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest name, in bytes: names are keys in the store, in paths and in tables.
pub const MAX_NAME_LENGTH: usize = 128;

/// A text that is no name of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} name {text:?}: {reason}")]
pub struct NameError {
    /// The expected kind, such as `application`.
    pub kind: &'static str,
    /// The text, shortened.
    pub text: String,
    /// The rule that the text breaks.
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
            /// Parses a name. The error says which rule a text breaks.
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

            /// Returns the name as text.
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
    /// The name of an application: lower-case words of letters and digits joined by dashes. It starts with a letter,
    /// and no word after a dash is only a number (`app-1` would read as a unit's tag).
    ApplicationName, "application", dashed_words
}
name! {
    /// The name of an endpoint, as the charm's metadata declares it.
    EndpointName, "endpoint", loose_word
}
name! {
    /// The name of an interface: the protocol that two endpoints share.
    InterfaceName, "interface", loose_word
}
name! {
    /// The name of a storage, as the charm's metadata declares it, by the rule for applications.
    StorageName, "storage", dashed_words
}
name! {
    /// The name of a resource, as the charm's metadata declares it: also a directory in the sandbox, and a part of
    /// URLs.
    ResourceName, "resource", host_word
}
name! {
    /// The name of a container, as the charm's metadata declares it: also a part of paths and of hooks' names.
    ContainerName, "container", host_word
}
name! {
    /// The name of a model: lower-case letters, digits and inner dashes.
    ModelName, "model", lower_word
}
name! {
    /// The name of a space, a set of subnets: lower-case letters, digits and inner dashes.
    SpaceName, "space", lower_word
}
name! {
    /// The name of an agent, unique in its controller.
    AgentName, "agent", host_word
}
name! {
    /// A tag of agents, for constraints.
    TagName, "tag", host_word
}
name! {
    /// The name of a cloud, for Juju's clients.
    CloudName, "cloud", host_word
}
name! {
    /// The name of a cloud's credential, for Juju's clients.
    CredentialName, "credential", host_word
}
name! {
    /// The name of a user of the controller: that of a local user, or `NAME@DOMAIN` of an external user, whom an issuer
    /// of identities knows.
    UserName, "user", user_name
}

impl UserName {
    /// Returns true for an external user, who logs in at an issuer and has no password.
    pub fn is_external(&self) -> bool {
        self.0.contains('@')
    }
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

fn user_name(text: &str) -> Result<(), &'static str> {
    let Some((name, domain)) = text.split_once('@') else { return host_word(text) };
    // An e-mail address in two spellings would be two users.
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err("an external user's name has no upper-case letters");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("it must start with a letter or digit");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+')) {
        return Err(
            "only letters, digits, dashes, dots, underscores and plus signs are allowed before the @ sign",
        );
    }
    host_word(domain).map_err(|_| "a domain must follow the @ sign")
}

/// The name of a unit: `APPLICATION/NUMBER`. Units of one application sort by number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct UnitName {
    application: ApplicationName,
    number: u32,
}

impl UnitName {
    /// Creates the name of an application's unit.
    pub fn new(application: ApplicationName, number: u32) -> Self {
        Self { application, number }
    }

    /// Returns the unit's application.
    pub fn application(&self) -> &ApplicationName {
        &self.application
    }

    /// Returns the unit's number in its application; never reused.
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
    fn a_user_is_local_or_of_one_domain() {
        for (good, external) in [("jane", false), ("J.Doe_1", false), ("jane.doe+x@example.com", true)] {
            assert_eq!(UserName::new(good).map(|name| name.is_external()), Ok(external), "{good}");
        }
        for bad in
            ["", "@example.com", "jane@", "jane@a@b", "Jane@example.com", "jane@-a", "j ne@a", "jane+x"]
        {
            assert!(UserName::new(bad).is_err(), "{bad}");
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
