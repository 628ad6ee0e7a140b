//! Replication: the choice of the primary, and its announcement among the units.

use periapt_sdk::{Relation, Result, Unit};

/// Publishes this unit's role and host to its peers; the leader makes itself the primary.
pub(crate) fn announce(unit: &Unit, peers: &Relation) -> Result {
    let leads = unit.is_leader()?;
    if leads {
        peers.app_bag().set("primary", unit.name())?;
    }
    let role = if leads { "primary" } else { "replica" };
    peers.unit_bag().set_all([("role", role), ("host", &host(unit, peers)?)])
}

/// Returns the primary, the unit that takes writes, once a leader has announced it.
pub(crate) fn primary(peers: &Relation) -> Result<Option<String>> {
    peers.app_bag().get("primary")
}

/// Returns the address at which the units of a relation reach this unit: the one in its bag, or the unit's name until
/// there is one.
pub(crate) fn host(unit: &Unit, relation: &Relation) -> Result<String> {
    let ingress = relation.unit_bag().get("ingress-address")?;
    Ok(ingress.or_else(|| unit.address().ok()).unwrap_or_else(|| unit.name()))
}
