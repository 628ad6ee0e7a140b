//! The check that a charm fits an application's relations, offers and storage (`docs/hook-model.md` U-37).

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, EndpointName, ErrorCode, InterfaceName, StorageId, StorageName,
    charm::{CharmMeta, CountRange, EndpointMeta, StorageMeta},
    relation::{Endpoint, Role, Scope},
    status::Life,
};

use crate::{
    application::deploy::Checks,
    entity::{Application, Relation},
    relation::{self, endpoints::JUJU_INFO},
    storage,
    transaction::Transaction,
};

/// The reason why a charm does not fit an application.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CharmMisfit {
    /// An endpoint would no longer fit its relation.
    #[error("would break relation {relation:?}: {reason}")]
    Relation { relation: String, reason: EndpointMisfit },
    /// An endpoint has more relations than the charm allows.
    #[error(
        "new charm version imposes a maximum relation limit of {limit} for {application}:{endpoint} \
         which cannot be satisfied by the number of already established relations ({count})"
    )]
    RelationLimit { limit: u32, application: ApplicationName, endpoint: EndpointName, count: u32 },
    /// The charm lacks an endpoint that is offered.
    #[error("would take endpoint {endpoint} from offer {:?}", .offer.as_str())]
    Offer { endpoint: EndpointName, offer: ApplicationName },
    /// Units have storage that the charm does not declare.
    #[error("in use storage {:?} removed", .0.as_str())]
    StorageRemoved(StorageName),
    /// Storage that units use would change between read-only and writable.
    #[error("existing storage {:?} read-only changed from {before} to {after}", .storage.as_str())]
    StorageReadOnly { storage: StorageName, before: bool, after: bool },
    /// Storage that units use would change its location.
    #[error("existing storage {:?} location changed from {before:?} to {after:?}", .storage.as_str())]
    StorageLocation { storage: StorageName, before: String, after: String },
    /// A unit has more of a storage than the charm allows.
    #[error("existing storage {:?} range contracted: a unit has {count}, not {range}", .storage.as_str())]
    StorageRange { storage: StorageName, count: u32, range: CountRange },
}

impl CharmMisfit {
    /// The code of the refusal.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::RelationLimit { .. } => ErrorCode::QuotaExceeded,
            _ => ErrorCode::Conflict,
        }
    }
}

/// The reason why an endpoint does not fit its relation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndpointMisfit {
    #[error("the new charm has no endpoint {:?}", .0.as_str())]
    Missing(EndpointName),
    #[error("endpoint {:?} would be a {new}, and is a {role}", .name.as_str())]
    Role { name: EndpointName, new: Role, role: Role },
    #[error("endpoint {:?} would speak {:?}, not {:?}", .name.as_str(), .new.as_str(), .interface.as_str())]
    Interface { name: EndpointName, new: InterfaceName, interface: InterfaceName },
    #[error("endpoint {:?} would have the scope container", .0.as_str())]
    Scope(EndpointName),
}

/// Checks that an application can be refreshed from one charm to another. The limits of relations can be skipped.
pub(super) fn check(
    tx: &Transaction<'_>,
    application: &Application,
    old: &CharmMeta,
    new: &CharmMeta,
    checks: Checks,
) -> Result<(), CharmMisfit> {
    check_relations(tx, &application.name, new, checks)?;
    check_offers(tx, application, new)?;
    check_storage(tx, &application.name, old, new)
}

/// Refuses a charm without an endpoint that is offered. Consumers depend on it.
fn check_offers(tx: &Transaction<'_>, application: &Application, new: &CharmMeta) -> Result<(), CharmMisfit> {
    let there = relation::endpoints::all(application, new);
    for offer in tx.state.offers_of(&application.name) {
        let lost = offer.endpoints.iter().find(|name| !there.iter().any(|(end, _)| end.name == **name));
        if let Some(lost) = lost {
            return Err(CharmMisfit::Offer { endpoint: lost.clone(), offer: offer.name.clone() });
        }
    }
    Ok(())
}

/// Refuses changes of storage that units use. The reason names the storage.
fn check_storage(
    tx: &Transaction<'_>,
    name: &ApplicationName,
    old: &CharmMeta,
    new: &CharmMeta,
) -> Result<(), CharmMisfit> {
    let mut most: BTreeMap<&StorageName, u32> = BTreeMap::new();
    for unit in tx.state.units_of(name) {
        for storage in tx.state.storages_of(&unit.name) {
            let count = storage::life::count_of(&tx.state, &unit.name, storage.id.name());
            let known = most.entry(storage.id.name()).or_default();
            *known = (*known).max(count);
        }
    }
    for (name, count) in most {
        let storage = name.clone();
        let Some(after) = new.storage.get(name) else { return Err(CharmMisfit::StorageRemoved(storage)) };
        let Some(before) = old.storage.get(name) else { continue };
        if before.read_only != after.read_only {
            let (before, after) = (before.read_only, after.read_only);
            return Err(CharmMisfit::StorageReadOnly { storage, before, after });
        }
        let location = |meta: &StorageMeta| meta.location_of(&StorageId::new(name.clone(), 0));
        if location(before) != location(after) {
            let (before, after) = (location(before), location(after));
            return Err(CharmMisfit::StorageLocation { storage, before, after });
        }
        if after.count.max.is_some_and(|max| count > max) {
            return Err(CharmMisfit::StorageRange { storage, count, range: after.count });
        }
    }
    Ok(())
}

/// Refuses changes of endpoints that relations use, and limits below their number.
fn check_relations(
    tx: &Transaction<'_>,
    name: &ApplicationName,
    meta: &CharmMeta,
    checks: Checks,
) -> Result<(), CharmMisfit> {
    let mut used: BTreeMap<&EndpointName, u32> = BTreeMap::new();
    for relation in tx.state.relations_of(name).filter(|relation| relation.life != Life::Dead) {
        let Some(end) = relation.end_of(name).filter(|end| end.name.as_str() != JUJU_INFO) else { continue };
        check_endpoint(relation, end, meta.endpoints.get(&end.name))
            .map_err(|reason| CharmMisfit::Relation { relation: relation.describe(), reason })?;
        *used.entry(&end.name).or_default() += 1;
    }
    for (endpoint, count) in used {
        let limit = relation::endpoints::limit(meta, endpoint);
        if let Some(limit) = limit.filter(|limit| count > *limit && checks == Checks::Required) {
            let (application, endpoint) = (name.clone(), endpoint.clone());
            return Err(CharmMisfit::RelationLimit { limit, application, endpoint, count });
        }
    }
    Ok(())
}

/// Refuses a declared endpoint that does not fit the relation of an endpoint in use.
fn check_endpoint(
    relation: &Relation,
    end: &Endpoint,
    declared: Option<&EndpointMeta>,
) -> Result<(), EndpointMisfit> {
    let name = end.name.clone();
    match declared {
        None => Err(EndpointMisfit::Missing(name)),
        Some(new) if new.role != end.role => {
            Err(EndpointMisfit::Role { name, new: new.role, role: end.role })
        }
        Some(new) if new.interface != end.interface => {
            let (new, interface) = (new.interface.clone(), end.interface.clone());
            Err(EndpointMisfit::Interface { name, new, interface })
        }
        // The reverse changes nothing: units in a container see their own principal as before.
        Some(new) if new.scope == Scope::Container && relation.scope == Scope::Global => {
            Err(EndpointMisfit::Scope(name))
        }
        Some(_) => Ok(()),
    }
}
