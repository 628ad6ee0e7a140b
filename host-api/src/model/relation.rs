//! Relations as all sides name them: endpoints, roles, scopes, bags.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApplicationName, EndpointName, InterfaceName, RelationId, UnitName};

/// Bytes of one key of a bag or of the leader settings, at least 1: a key is a name, and each reader gets it with
/// each value. Checked in the hook at the call, and again at commit, as the bounds below are.
pub const MAX_KEY_BYTES: usize = 256;

/// Bytes of one value of a bag or of the leader settings. A bag may be one value: charms send dashboards and rules of
/// alerts in one key, and what others hold of a bag is the same however it is divided.
pub const MAX_VALUE_BYTES: usize = MAX_BAG_BYTES;

/// Bytes of all keys and values of one bag, or of the leader settings: all who see a bag hold it in memory, and each
/// change of it writes it whole, in a commit that takes 1 MiB.
pub const MAX_BAG_BYTES: usize = 256 << 10;

/// Which side of an interface an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// `provides`
    Provider,
    /// `requires`
    Requirer,
    /// `peers`
    Peer,
}

impl Role {
    /// The role that it can be related to.
    pub fn counterpart(self) -> Self {
        match self {
            Self::Provider => Self::Requirer,
            Self::Requirer => Self::Provider,
            Self::Peer => Self::Peer,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Provider => "provider",
            Self::Requirer => "requirer",
            Self::Peer => "peer",
        })
    }
}

/// Who sees whom in a relation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All units of one side see all of the other.
    #[default]
    Global,
    /// A principal sees only its subordinate, and the subordinate its principal.
    Container,
}

/// One end of a relation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Endpoint {
    /// The application.
    pub application: ApplicationName,
    /// The endpoint's name in its charm.
    pub name: EndpointName,
    /// Its role.
    pub role: Role,
    /// Its interface.
    pub interface: InterfaceName,
}

/// `APPLICATION:ENDPOINT`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.application, self.name)
    }
}

/// Whose bag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BagOwner {
    /// A unit's own settings in the relation.
    Unit(UnitName),
    /// An application's settings in the relation; its leader writes them.
    Application(ApplicationName),
}

/// One bag of one relation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BagKey {
    /// The relation.
    pub relation: RelationId,
    /// Whose.
    pub owner: BagOwner,
}

/// A bag's content. An empty value is never kept: writing one deletes the key.
pub type Settings = BTreeMap<String, String>;
