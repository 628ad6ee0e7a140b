//! A secret's content: in plain text, as charms and operators write it, and encrypted.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of one value, and of all values of a secret together, as base64 text.
pub const MAX_CONTENT_BYTES: usize = 1_000_000;

/// The most keys of one secret: each has a length of its own in the binary form.
pub const MAX_KEYS: usize = 1_000;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 256;

/// The suffix of a key whose value is base64 already.
pub const BASE64_SUFFIX: &str = "#base64";

/// Encodes bytes as base64 text, the form in which content is kept.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Content that no secret can have. The messages are Juju's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// A key has the wrong form.
    #[error("key {0:?} not valid")]
    Key(String),
    /// A value whose key has the suffix for base64 is no base64.
    #[error("value of key {0:?} is not valid base64")]
    Base64(String),
    /// A value is too large. Holds its key and size in bytes.
    #[error("secret content for key {0:?} too large: {1} bytes, at most 1000000 are allowed")]
    LargeValue(String, usize),
    /// All values together are too large. Holds their size in bytes.
    #[error("secret content too large: {0} bytes, at most 1000000 are allowed")]
    Large(usize),
    /// The content has too many keys.
    #[error("secret has {0} keys, at most 1000 are allowed")]
    ManyKeys(usize),
    /// The content is empty.
    #[error("empty secret value not valid")]
    Empty,
}

/// The content of one revision: values as base64 text, by key. `Debug` does not print values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretData(BTreeMap<String, String>);

/// Prints no values: debug output gets into logs.
impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretData({} keys)", self.0.len())
    }
}

impl SecretData {
    /// Creates content from keys, some of which may end in `#base64`, and values.
    ///
    /// # Errors
    /// [`ContentError`]
    pub fn from_texts(texts: impl IntoIterator<Item = (String, String)>) -> Result<Self, ContentError> {
        let mut values = BTreeMap::new();
        for (key, value) in texts {
            let (key, value) = match key.strip_suffix(BASE64_SUFFIX) {
                Some(key) => (key.to_owned(), value),
                None => (key, STANDARD.encode(value)),
            };
            values.insert(key, value);
        }
        let data = Self(values);
        data.check()?;
        Ok(data)
    }

    /// Creates content from keys and raw values.
    ///
    /// # Errors
    /// [`ContentError`]
    pub fn from_values<V: AsRef<[u8]>>(
        values: impl IntoIterator<Item = (String, V)>,
    ) -> Result<Self, ContentError> {
        let data = Self(values.into_iter().map(|(key, value)| (key, STANDARD.encode(value))).collect());
        data.check()?;
        Ok(data)
    }

    /// Returns keys and raw values, by key.
    pub fn values(&self) -> Vec<(String, Vec<u8>)> {
        self.0.iter().map(|(key, value)| (key.clone(), STANDARD.decode(value).unwrap_or_default())).collect()
    }

    /// Checks the content. The controller checks content from the network before it does anything else with it.
    ///
    /// # Errors
    /// [`ContentError`]
    pub fn check(&self) -> Result<(), ContentError> {
        if self.0.is_empty() {
            return Err(ContentError::Empty);
        }
        if self.0.len() > MAX_KEYS {
            return Err(ContentError::ManyKeys(self.0.len()));
        }
        let mut total = 0_usize;
        for (key, value) in &self.0 {
            let shown = || key.chars().take(64).collect();
            if key.len() > MAX_KEY_BYTES || !is_key(key) {
                return Err(ContentError::Key(shown()));
            }
            if value.len() > MAX_CONTENT_BYTES {
                return Err(ContentError::LargeValue(shown(), value.len()));
            }
            if STANDARD.decode(value).is_err() {
                return Err(ContentError::Base64(shown()));
            }
            total = total.saturating_add(value.len());
        }
        if total > MAX_CONTENT_BYTES {
            return Err(ContentError::Large(total));
        }
        Ok(())
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of keys and values.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    /// Returns keys and base64 texts, by key.
    pub fn base64(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns keys and values as text, by key. A value that is no text stays base64, as Juju prints it.
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(key, value)| (key.clone(), text_of(value))).collect()
    }

    /// Returns one value as text, or as base64 for a key with the suffix `#base64`.
    pub fn value(&self, key: &str) -> Option<String> {
        match key.strip_suffix(BASE64_SUFFIX) {
            Some(key) => self.0.get(key).cloned(),
            None => self.0.get(key).map(|value| text_of(value)),
        }
    }

    /// Returns the binary form that is encrypted: for each key its length and bytes, and its value's length and
    /// bytes.
    ///
    /// # Errors
    /// [`ContentError::Base64`]
    pub fn to_bytes(&self) -> Result<Vec<u8>, ContentError> {
        let mut bytes = Vec::with_capacity(self.len());
        for (key, value) in &self.0 {
            let value = STANDARD.decode(value).map_err(|_| ContentError::Base64(key.clone()))?;
            for part in [key.as_bytes(), &value] {
                // No part is longer than `MAX_CONTENT_BYTES`.
                bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
                bytes.extend(part);
            }
        }
        Ok(bytes)
    }

    /// Reads the binary form. Returns `None` for other bytes.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut values = BTreeMap::new();
        let mut part = || -> Option<Option<&[u8]>> {
            if bytes.is_empty() {
                return Some(None);
            }
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let (part, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            bytes = rest;
            Some(Some(part))
        };
        while let Some(key) = part()? {
            let value = part()??;
            values.insert(std::str::from_utf8(key).ok()?.to_owned(), STANDARD.encode(value));
        }
        Some(Self(values))
    }
}

/// Returns true for a key: a lower-case letter first, then lower-case letters and digits with single dashes inside;
/// at least three characters.
fn is_key(key: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    key.len() >= 3 && key.starts_with(|c: char| c.is_ascii_lowercase()) && key.split('-').all(word)
}

fn text_of(base64: &str) -> String {
    let decoded = STANDARD.decode(base64).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_else(|| base64.to_owned())
}

/// Bytes that are encrypted with the controller's key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Sealed {
    /// A keyed digest of the plain bytes and their purpose: equal bytes have equal digests, and guesses cannot be
    /// tested without the key.
    pub checksum: String,
    /// The ciphertext, as base64.
    pub bytes: String,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.bytes.len())
    }
}

/// A confidential value: open on its way to the controller, and encrypted from the controller's API on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidential<T> {
    /// The plain value from a charm or an operator. The model refuses it.
    Open(T),
    /// The encrypted value.
    Sealed(Sealed),
}

/// Prints no content.
impl<T> fmt::Debug for Confidential<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open(..)",
            Self::Sealed(_) => "Sealed(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(texts: &[(&str, &str)]) -> Result<SecretData, ContentError> {
        SecretData::from_texts(texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
    }

    proptest! {
        #[test]
        fn content_is_read_back_from_its_compact_form(
            values in proptest::collection::btree_map("[a-z]{3,9}", ".{0,40}", 1..6)
        ) {
            let data = SecretData::from_texts(values.clone()).unwrap();
            prop_assert_eq!(SecretData::from_bytes(&data.to_bytes().unwrap()), Some(data.clone()));
            prop_assert_eq!(data.texts(), values);
        }

        #[test]
        fn no_bytes_make_reading_fail_otherwise_than_by_nothing(bytes: Vec<u8>) {
            let _ = SecretData::from_bytes(&bytes);
        }
    }

    #[test]
    fn keys_are_words_joined_by_dashes() {
        for good in ["abc", "a1-b2", "password"] {
            assert!(data(&[(good, "x")]).is_ok(), "{good}");
        }
        for bad in ["", "ab", "a b", "1ab", "Abc", "a--b", "abc-", "a_b"] {
            assert_eq!(data(&[(bad, "x")]), Err(ContentError::Key(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn base64_is_taken_as_it_is_and_bytes_that_are_no_text_stay_so() {
        let binary = data(&[("key#base64", "/w=="), ("text#base64", "aGk=")]).unwrap();
        assert_eq!(binary.value("key").unwrap(), "/w==");
        assert_eq!(binary.value("text").unwrap(), "hi");
        assert_eq!(binary.value("text#base64").unwrap(), "aGk=");
        assert_eq!(data(&[("key#base64", "?")]), Err(ContentError::Base64("key".to_owned())));
    }

    #[test]
    fn content_has_bounds() {
        assert_eq!(data(&[]), Err(ContentError::Empty));
        let large = "x".repeat(740_000);
        assert!(data(&[("one", &large)]).is_ok());
        assert!(matches!(data(&[("one", &large), ("two", &large)]), Err(ContentError::Large(_))));
        assert!(matches!(data(&[("one", &"x".repeat(760_000))]), Err(ContentError::LargeValue(..))));
    }

    #[test]
    fn what_is_confidential_is_not_printed() {
        let open = Confidential::Open(data(&[("password", "hunter2")]).unwrap());
        let printed = format!("{open:?} {:?}", data(&[("password", "hunter2")]).unwrap());
        assert!(!printed.contains("hunter2") && !printed.contains("aHVudGVyMg"), "{printed}");
    }
}
