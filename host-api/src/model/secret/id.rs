//! Ids of secrets: random, so that known ids do not help to guess others (CVE-2026-32694).

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ModelUuid;

/// The digits of an id, those of xids.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// The number of digits: 96 bits in groups of five, with the last group padded.
const LENGTH: usize = 20;

/// The id of a secret: 12 random bytes, written as 20 digits `0-9a-v`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SecretId([u8; 12]);

/// A text that is no secret's id or URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("secret URI {0:?} not valid")]
pub struct SecretIdError(String);

impl SecretId {
    /// Creates an id from 12 bytes, which the caller drew at random.
    pub fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }

    /// Derives the `number`th id from a secret seed. The id is as random as the seed.
    pub fn drawn(seed: &[u8], number: u64) -> Self {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(b"periapt secret id")
            .chain_update((seed.len() as u64).to_be_bytes())
            .chain_update(seed)
            .chain_update(number.to_be_bytes())
            .finalize()
            .into();
        let mut bytes = [0; 12];
        for (to, from) in bytes.iter_mut().zip(digest) {
            *to = from;
        }
        Self(bytes)
    }

    /// Returns the random bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns `secret:ID`.
    pub fn uri(&self) -> String {
        format!("secret:{self}")
    }
}

/// Writes the bare digits.
impl fmt::Display for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The 96 bits, with four zero bits below to pad the last group.
        let bits = self.0.iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte)) << 4;
        let digit = |place: usize| (bits >> (5 * (LENGTH - 1 - place))) & 31;
        let text: String = (0..LENGTH)
            .filter_map(|place| DIGITS.get(usize::try_from(digit(place)).ok()?))
            .map(|digit| char::from(*digit))
            .collect();
        f.pad(&text)
    }
}

impl fmt::Debug for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SecretId {
    type Err = SecretIdError;
    /// Reads the bare digits.
    fn from_str(text: &str) -> Result<Self, SecretIdError> {
        let wrong = || SecretIdError(text.chars().take(64).collect());
        if text.len() != LENGTH {
            return Err(wrong());
        }
        let mut bits = 0_u128;
        for letter in text.bytes() {
            let digit = DIGITS.iter().position(|digit| *digit == letter).ok_or_else(wrong)?;
            bits = bits << 5 | digit as u128;
        }
        // The four padding bits must be 0, so that an id has one spelling.
        if bits & 15 != 0 {
            return Err(wrong());
        }
        let mut bytes = [0; 12];
        for (byte, from) in bytes.iter_mut().zip((bits >> 4).to_be_bytes().into_iter().skip(4)) {
            *byte = from;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for SecretId {
    type Error = SecretIdError;
    fn try_from(text: String) -> Result<Self, SecretIdError> {
        text.parse()
    }
}

impl From<SecretId> for String {
    fn from(id: SecretId) -> String {
        id.to_string()
    }
}

/// A reference to a secret: `secret:ID`, `secret://MODEL-UUID/ID`, or the bare id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretUri {
    /// The secret.
    pub id: SecretId,
    /// The model, if the reference names it.
    pub model: Option<ModelUuid>,
}

impl FromStr for SecretUri {
    type Err = SecretIdError;
    fn from_str(text: &str) -> Result<Self, SecretIdError> {
        let wrong = |_| SecretIdError(text.chars().take(96).collect());
        let Some(rest) = text.strip_prefix("secret:") else {
            return Ok(Self { id: text.parse().map_err(wrong)?, model: None });
        };
        match rest.strip_prefix("//").map(|path| path.split_once('/')) {
            None => Ok(Self { id: rest.parse().map_err(wrong)?, model: None }),
            Some(Some((model, id))) => {
                let model = model.parse().map_err(|_| wrong(SecretIdError(String::new())))?;
                Ok(Self { id: id.parse().map_err(wrong)?, model: Some(model) })
            }
            Some(None) => Err(wrong(SecretIdError(String::new()))),
        }
    }
}

/// The number of a secret's revision: rises from 1 and is never reused.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct SecretRevision(pub u32);

impl SecretRevision {
    /// A number before the first revision. A hook whose view lacks a secret asks the controller for this revision.
    /// The refusal distinguishes a secret that the unit may not read from one that does not exist.
    pub const NONE: Self = Self(0);

    /// Returns the next number.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for SecretRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SecretRevision {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_is_read_back_as_written(bytes: [u8; 12]) {
            let id = SecretId::from_bytes(bytes);
            let text = id.to_string();
            prop_assert_eq!(text.len(), 20);
            prop_assert_eq!(text.parse::<SecretId>(), Ok(id));
            prop_assert_eq!(id.uri().parse::<SecretUri>().map(|uri| uri.id), Ok(id));
        }

        #[test]
        fn whatever_is_read_as_an_id_is_written_so(text in "[0-9a-w]{18,22}") {
            if let Ok(id) = text.parse::<SecretId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn ids_sort_as_their_texts() {
        let (low, high) = (SecretId::from_bytes([0; 12]), SecretId::from_bytes([255; 12]));
        assert_eq!(
            (low.to_string().as_str(), high.to_string().as_str()),
            ("00000000000000000000", "vvvvvvvvvvvvvvvvvvvg")
        );
        assert!(low < high);
    }

    #[test]
    fn a_uri_may_name_its_model() {
        let uri: SecretUri =
            "secret://0197a5ee-0000-7000-8000-000000000001/00000000000000000000".parse().unwrap();
        assert!(uri.model.is_some());
        for bad in
            ["", "secret:", "secret://x/00000000000000000000", "secret://00000000000000000000", "secrets:0"]
        {
            let error = bad.parse::<SecretUri>().unwrap_err().to_string();
            assert_eq!(error, format!("secret URI {bad:?} not valid"));
        }
    }

    #[test]
    fn drawn_ids_differ_by_seed_and_number_and_repeat() {
        assert_eq!(SecretId::drawn(&[1], 0), SecretId::drawn(&[1], 0));
        assert_ne!(SecretId::drawn(&[1], 0), SecretId::drawn(&[1], 1));
        assert_ne!(SecretId::drawn(&[1], 0), SecretId::drawn(&[2], 0));
    }
}
