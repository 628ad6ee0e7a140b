//! Storage: ids of instances, and storage directives (`docs/hook-model.md` 5.8, `docs/design/storage.md`).

use std::{collections::BTreeMap, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{NameError, name::StorageName};

mod size;

pub use size::{SizeError, mebibytes, parse_bytes, parse_size};

/// The only storage pool, under Juju's name: a directory of the agent's own disk.
pub const DEFAULT_POOL: &str = "rootfs";

/// The default size of an instance, in mebibytes.
pub const DEFAULT_SIZE: u64 = 1024;

/// The largest instance, in mebibytes (1 PiB): above it, sums of bytes could overflow.
pub const MAX_SIZE: u64 = 1 << 30;

/// The files per mebibyte of an instance: one for each 16 KiB, the usual ratio of file systems.
const FILES_PER_MEBIBYTE: u64 = 64;

/// Returns the bound of an instance in bytes, from its size in mebibytes.
pub fn bytes_of(size: u64) -> u64 {
    size.saturating_mul(1 << 20)
}

/// Returns the bound of an instance in files and directories, from its size in mebibytes.
pub fn files_of(size: u64) -> u64 {
    size.saturating_mul(FILES_PER_MEBIBYTE)
}

/// The most instances of a unit at a time: each hook of the unit opens each instance's directory, and one commit
/// removes them with the unit.
pub const MAX_PER_UNIT: u32 = 12;

/// The id of a storage instance: `NAME/NUMBER`. Numbers rise over a model and are never reused.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct StorageId {
    name: StorageName,
    number: u32,
}

impl StorageId {
    /// Creates the id of an instance.
    pub fn new(name: StorageName, number: u32) -> Self {
        Self { name, number }
    }

    /// Returns the charm's storage of the instance.
    pub fn name(&self) -> &StorageName {
        &self.name
    }

    /// Returns the instance's number in the model.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl FromStr for StorageId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = |reason| NameError { kind: "storage", text: text.chars().take(128).collect(), reason };
        let (name, number) = text.split_once('/').ok_or_else(|| wrong("it must be NAME/NUMBER"))?;
        let canonical =
            number == "0" || (!number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit()));
        let number =
            number.parse().ok().filter(|_| canonical).ok_or_else(|| wrong("no number after the slash"))?;
        let name = StorageName::new(name).map_err(|error| wrong(error.reason))?;
        Ok(Self { name, number })
    }
}

impl TryFrom<String> for StorageId {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<StorageId> for String {
    fn from(id: StorageId) -> String {
        id.to_string()
    }
}

impl fmt::Display for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.number)
    }
}

impl fmt::Debug for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The kinds of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// A block device. It is known, and refused: a sandbox has no devices.
    Block,
    /// A directory.
    Filesystem,
}

impl fmt::Display for StorageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Block => "block",
            Self::Filesystem => "filesystem",
        })
    }
}

/// An operator's storage directive: `[POOL][,COUNT][,SIZE]`, in any order. The charm's declaration holds for absent
/// parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageDirective {
    /// The storage pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The size of each instance, in mebibytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The number of instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

impl StorageDirective {
    /// Returns the number of instances for a new unit. The charm requires at least `least`. A size alone means one
    /// instance, as in Juju, or `least` if that is more.
    pub fn count_for_new_unit(&self, least: u32) -> u32 {
        match (self.count, self.size) {
            (Some(count), _) => count,
            (None, Some(_)) => least.max(1),
            (None, None) => least,
        }
    }
}

/// Directives by the charm's storage names.
pub type StorageDirectives = BTreeMap<StorageName, StorageDirective>;

/// A text that is no directive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectiveError {
    /// The text is empty.
    #[error("a storage directive must not be empty")]
    Empty,
    /// A part is no pool, count or size.
    #[error("unrecognized storage directive {0:?}: a pool's name, a count and a size such as 2G are known")]
    Unknown(String),
    /// A part is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A count is invalid.
    #[error("cannot parse count: count must be greater than zero, got {0:?}")]
    Count(String),
    /// A size is invalid.
    #[error("cannot parse size: {0}")]
    Size(#[from] SizeError),
}

impl FromStr for StorageDirective {
    type Err = DirectiveError;
    fn from_str(text: &str) -> Result<Self, DirectiveError> {
        if text.is_empty() {
            return Err(DirectiveError::Empty);
        }
        let mut directive = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let digits = part.strip_prefix('-').unwrap_or(part);
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let count = part.parse().ok().filter(|count| *count > 0);
                let count = count.ok_or_else(|| DirectiveError::Count(part.to_owned()))?;
                set(&mut directive.count, count, "the count")?;
            } else if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
                set(&mut directive.size, parse_size(part)?, "the size")?;
            } else if is_pool(part) {
                set(&mut directive.pool, part.to_owned(), "the pool")?;
            } else {
                return Err(DirectiveError::Unknown(part.chars().take(64).collect()));
            }
        }
        Ok(directive)
    }
}

/// Writes the directive in the form that parsing reads. An empty directive is `1`, one instance.
impl fmt::Display for StorageDirective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, size, count } = self;
        let size = size.map(|size| format!("{size}M"));
        let count = count.map(|count| count.to_string());
        let parts: Vec<_> = [pool, &count, &size].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { f.write_str("1") } else { f.write_str(&parts.join(",")) }
    }
}

fn set<T>(place: &mut Option<T>, value: T, what: &'static str) -> Result<(), DirectiveError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(DirectiveError::Twice(what)),
    }
}

fn is_pool(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The end of an instance that is removed from the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageEnd {
    /// The agent deletes the files.
    Destroy,
    /// The model forgets the instance, and the files stay.
    Release,
}

/// The treatment of a removed unit's storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnitStorage {
    /// The storage stays in the model, and can be attached to another unit of the same agent.
    #[default]
    Detach,
    /// The storage is destroyed with its files.
    Destroy,
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (Option<String>, Option<u64>, Option<u32>);

    fn check(text: &str) -> Result<Parts, String> {
        let directive: StorageDirective = text.parse().map_err(|error: DirectiveError| error.to_string())?;
        Ok((directive.pool, directive.size, directive.count))
    }

    #[test]
    fn a_directive_names_pool_count_and_size_in_any_order() {
        assert_eq!(check("1G,2"), Ok((None, Some(1024), Some(2))));
        assert_eq!(check("rootfs,3,0.5G"), Ok((Some("rootfs".into()), Some(512), Some(3))));
        assert_eq!(check("100M"), Ok((None, Some(100), None)));
        assert_eq!(check(",rootfs,"), Ok((Some("rootfs".into()), None, None)));
    }

    #[test]
    fn a_directive_is_written_as_it_is_read() {
        for text in ["rootfs,2,1024M", "3", "512M", "rootfs"] {
            let directive: StorageDirective = text.parse().unwrap();
            assert_eq!(directive.to_string(), text);
        }
    }

    #[test]
    fn a_wrong_directive_is_told_what_is_wrong_with_it() {
        assert_eq!(check("").unwrap_err(), "a storage directive must not be empty");
        for (text, part) in [
            ("0", "count must be greater than zero"),
            ("-1", "count must be greater than zero"),
            ("99999999999", "count must be greater than zero"),
            ("1,2", "the count is given twice"),
            ("1G,1M", "the size is given twice"),
            ("rootfs,ebs", "the pool is given twice"),
            ("1Q", "cannot parse size"),
            ("a_b", "unrecognized storage directive"),
            ("../x", "cannot parse size"),
        ] {
            assert!(check(text).unwrap_err().contains(part), "{text}: {:?}", check(text));
        }
    }

    #[test]
    fn a_size_alone_means_one_instance_and_a_pool_alone_what_the_charm_demands() {
        let count = |text: &str, least| text.parse::<StorageDirective>().unwrap().count_for_new_unit(least);
        assert_eq!([count("2M", 0), count("2M", 1), count("2M", 3)], [1, 1, 3]);
        assert_eq!([count("rootfs,2M", 0), count("rootfs", 0), count("rootfs", 2)], [1, 0, 2]);
        assert_eq!([count("2", 0), count("2,2M", 0), count("rootfs,1", 0), count("1,2M", 3)], [2, 2, 1, 1]);
    }

    #[test]
    fn ids_are_read_back_as_written() {
        let (two, ten): (StorageId, StorageId) = ("data/2".parse().unwrap(), "data/10".parse().unwrap());
        assert!(two < ten);
        assert_eq!(ten.to_string(), "data/10");
        for bad in
            ["data", "data/", "/0", "data/01", "data/-1", "data/0/1", "Data/0", "../0", "data/4294967296"]
        {
            assert!(bad.parse::<StorageId>().is_err(), "{bad}");
        }
    }
}
