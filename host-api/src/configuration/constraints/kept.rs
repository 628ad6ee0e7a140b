//! Constraints that no sandbox can meet: kept as given, shown, and without effect (as Juju keeps constraints that a
//! cloud does not support).

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ConstraintsError;
use crate::{storage::parse_size, truth};

/// The longest text value, in bytes: names of images and machines.
const MAX_TEXT: usize = 256;

/// Constraints on machines, which have no effect in a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct KeptConstraints {
    /// The bytes of `mem`, if they are more than a hook may have. Workloads may have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem: Option<u64>,
    /// Values of Juju's other keys, as `KeptConstraint::read` writes them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<KeptConstraint, String>,
}

/// A constraint of Juju's on machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "Juju's names, which say what they ask")]
pub enum KeptConstraint {
    AllocatePublicIp,
    Container,
    CpuPower,
    ImageId,
    InstanceRole,
    InstanceType,
    RootDisk,
    RootDiskSource,
    VirtType,
}

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// A size, in mebibytes if it has no unit.
    Size,
    Text,
    Truth,
}

impl KeptConstraints {
    /// Returns true if no constraint is kept.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks values by the rules for texts.
    pub(super) fn check(&self) -> Result<(), ConstraintsError> {
        self.others.iter().try_for_each(|(key, value)| key.read(value).map(drop))
    }
}

/// Writes `cpu-power=100 root-disk=8192M`, without `mem`.
impl fmt::Display for KeptConstraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.others.iter().map(|(key, value)| format!("{}={value}", key.as_str()));
        f.write_str(&pairs.collect::<Vec<_>>().join(" "))
    }
}

impl KeptConstraint {
    /// All keys, by name.
    pub const ALL: [Self; 9] = [
        Self::AllocatePublicIp,
        Self::Container,
        Self::CpuPower,
        Self::ImageId,
        Self::InstanceRole,
        Self::InstanceType,
        Self::RootDisk,
        Self::RootDiskSource,
        Self::VirtType,
    ];

    /// Returns the key of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.as_str() == name)
    }

    /// Returns the key as operators write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllocatePublicIp => "allocate-public-ip",
            Self::Container => "container",
            Self::CpuPower => "cpu-power",
            Self::ImageId => "image-id",
            Self::InstanceRole => "instance-role",
            Self::InstanceType => "instance-type",
            Self::RootDisk => "root-disk",
            Self::RootDiskSource => "root-disk-source",
            Self::VirtType => "virt-type",
        }
    }

    /// Returns the reason that the constraint has no effect, and the alternative.
    pub fn because(self) -> &'static str {
        match self {
            Self::AllocatePublicIp => "an agent has the addresses that its host has",
            Self::Container | Self::ImageId | Self::InstanceRole | Self::InstanceType | Self::VirtType => {
                "units run in sandboxes of agents; tags= and zones= say of which"
            }
            Self::CpuPower => {
                "it limits containers; a hook runs on one core, and `config hook-cpu-budget` says how much it may use"
            }
            Self::RootDisk | Self::RootDiskSource => {
                "files that last are storage; `deploy --storage` says how large it is"
            }
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::AllocatePublicIp => Kind::Truth,
            Self::CpuPower => Kind::Number,
            Self::RootDisk => Kind::Size,
            _ => Kind::Text,
        }
    }

    /// Parses a value into the form in which it is kept.
    pub(super) fn read(self, text: &str) -> Result<String, ConstraintsError> {
        let wrong = |reason: String| ConstraintsError::Value { key: self.as_str(), reason };
        let short = || text.chars().take(64).collect::<String>();
        match self.kind() {
            Kind::Number => match text.parse::<u64>() {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err(wrong(format!("invalid number {:?}", short()))),
            },
            Kind::Size => match parse_size(text) {
                Ok(size) => Ok(format!("{size}M")),
                Err(error) => Err(wrong(error.to_string())),
            },
            Kind::Truth => match truth::parse(text) {
                Some(truth) => Ok(truth.to_string()),
                None => Err(wrong(format!("{:?} is neither true nor false", short()))),
            },
            Kind::Text if text.len() > MAX_TEXT => Err(wrong(format!("at most {MAX_TEXT} bytes"))),
            Kind::Text if text.contains(|c: char| c.is_control() || c.is_whitespace()) => {
                Err(wrong(format!("{:?} has blanks or control characters", short())))
            }
            Kind::Text => Ok(text.to_owned()),
        }
    }

    /// Returns a kept value as JSON; sizes are in mebibytes.
    pub fn show(self, value: &str) -> Value {
        let number = |text: &str| text.parse::<u64>().map_or_else(|_| text.into(), Value::from);
        match self.kind() {
            Kind::Number => number(value),
            Kind::Size => number(value.strip_suffix('M').unwrap_or(value)),
            Kind::Truth => (value == "true").into(),
            Kind::Text => value.into(),
        }
    }
}
