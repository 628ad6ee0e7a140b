//! The connections between agents, for the calls of units to units on other hosts.
//!
//! The agent that calls sends one [`PeerOrder`] as JSON, after its length in two bytes. The other one answers with one byte,
//! [`OPENED`](crate::pod::OPENED) or [`REFUSED`](crate::pod::REFUSED). After the first of them, the connection is the
//! stream between the two units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, ModelUuid, UnitName};

/// The most bytes of an order: names have at most 128 bytes, and fields of later versions have room.
pub const MAX_ORDER_BYTES: usize = 1 << 10;

/// The way from one agent to another one, as the controller tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentPlace {
    /// The addresses of the agent's host, the preferred first.
    pub addresses: Vec<String>,
    /// The port on which the agent takes connections of other agents; none if it takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The SHA-256 digest of the agent's public key.
    pub key: Digest,
}

/// The order of one agent to another one: a connection between two units of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PeerOrder {
    /// The model.
    pub model: ModelUuid,
    /// The unit that calls, which the sender runs.
    pub from: UnitName,
    /// The target.
    pub to: PeerTarget,
    /// The target's port.
    pub port: u16,
}

/// The target of a connection on the other agent's host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerTarget {
    /// A unit.
    Unit(UnitName),
    /// A unit that has the port open: the caller knows the host by its address.
    Host,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_fits_its_bound_and_fields_of_later_versions_are_passed_over() {
        let unit: UnitName = format!("{}/4294967295", "a".repeat(100)).parse().unwrap();
        let order = PeerOrder {
            model: ModelUuid(uuid::Uuid::nil()),
            from: unit.clone(),
            to: PeerTarget::Unit(unit),
            port: u16::MAX,
        };
        let mut json = serde_json::to_value(&order).unwrap();
        assert!(json.to_string().len() < MAX_ORDER_BYTES / 2);
        json["later"] = 1.into();
        assert_eq!(serde_json::from_value::<PeerOrder>(json).unwrap(), order);
    }
}
