//! Relations: endpoints, roles, scopes, bags.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApplicationName, EndpointName, InterfaceName, RelationId, UnitName};

/// The most bytes of one key of a bag or of the leader settings; the least is 1. Each reader gets the key with each
/// value. The hook checks this bound and those below at the call, and the controller at the commit.
pub const MAX_KEY_BYTES: usize = 256;

/// The most bytes of one value of a bag or of the leader settings. One value may fill a bag: charms send dashboards
/// and alert rules in one key, and a bag takes the same memory in any division.
pub const MAX_VALUE_BYTES: usize = MAX_BAG_BYTES;

/// The most bytes of all keys and values of one bag, or of the leader settings. All who see a bag hold it in memory,
/// and each change writes the whole bag, in a commit that takes 1 MiB.
pub const MAX_BAG_BYTES: usize = 256 << 10;

/// The role of an endpoint in its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A provider, from the section `provides`.
    Provider,
    /// A requirer, from the section `requires`.
    Requirer,
    /// A peer, from the section `peers`.
    Peer,
}

impl Role {
    /// Returns the role that this role relates to.
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

/// The visibility of units in a relation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Units of each side see all units of the other side.
    #[default]
    Global,
    /// A principal sees only its subordinate, and the subordinate its principal.
    Container,
}

/// One end of a relation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Endpoint {
    /// The application's name.
    pub application: ApplicationName,
    /// The endpoint's name in its charm.
    pub name: EndpointName,
    /// The endpoint's role.
    pub role: Role,
    /// The endpoint's interface.
    pub interface: InterfaceName,
}

/// Writes `APPLICATION:ENDPOINT`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.application, self.name)
    }
}

/// The owner of a bag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BagOwner {
    /// A unit, with its own settings in the relation.
    Unit(UnitName),
    /// An application, with its settings in the relation, which its leader writes.
    Application(ApplicationName),
}

/// The key of a bag: its relation and its owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BagKey {
    /// The relation.
    pub relation: RelationId,
    /// The owner.
    pub owner: BagOwner,
}

/// The content of a bag. Empty values are never stored: writing one deletes the key.
pub type Settings = BTreeMap<String, String>;
