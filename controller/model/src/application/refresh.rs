//! Refreshing: another charm for an application (`docs/hook-model.md` 1.10).

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, Digest, EndpointName, ErrorCode, Refusal, ResourceName, StorageId, StorageName,
    charm::{CharmMeta, EndpointMeta, StorageMeta},
    command::{Answer, Caller, RefreshWith},
    record::CharmRef,
    relation::{Endpoint, Scope},
    status::Life,
};

use super::{
    config,
    deploy::{add_peers, check_assumed, uploaded, use_charm},
};
use crate::{
    charm,
    entity::{Application, Relation, Work},
    relation::{self, endpoints::JUJU_INFO},
    resource, secret, storage,
    transaction::Transaction,
};

pub(crate) fn refresh(
    tx: &mut Transaction<'_>,
    caller: &Caller,
    name: &ApplicationName,
    digest: &Digest,
    force: bool,
    with: &RefreshWith,
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("cannot refresh application {:?}: {reason}", name.as_str()))
            .about(format!("application {name}"))
    };
    if application.life != Life::Alive {
        return Err(cannot(ErrorCode::NotAlive, "application is not alive".to_owned()));
    }
    let meta = uploaded(tx, digest)?;
    if application.charm.digest == *digest {
        // The same charm, but now past a hook error (1.9, rule 1).
        let forced = force && !application.force_charm;
        if forced || !with.is_empty() {
            application.force_charm |= force;
            change_with(tx, caller, &mut application, meta, with)
                .map_err(|refusal| cannot(refusal.code, refusal.message))?;
            application.config_hash = config::config_hash(meta, &application.config, application.charm);
            tx.put(application);
            return Ok(Answer::Done);
        }
        let revision = tx.state.charm(digest).map_or(0, |charm| charm.revision);
        let text = format!("already running charm \"local:{}-{revision}\"", meta.name);
        return Err(cannot(ErrorCode::AlreadyExists, text));
    }
    let old = tx.charm_meta(&application)?;
    if meta.subordinate != application.subordinate {
        return Err(cannot(ErrorCode::BadRequest, "cannot change an application's subordinacy".to_owned()));
    }
    if meta.name != old.name && !force {
        let text = format!("charm {:?} is not {:?}; use force to switch", meta.name, old.name);
        return Err(cannot(ErrorCode::BadRequest, text));
    }
    check_assumed(meta, force).map_err(|text| cannot(ErrorCode::NotSupported, text))?;
    check_relations(tx, name, meta, force).map_err(|(code, text)| cannot(code, text))?;
    check_offers(tx, &application, meta).map_err(|text| cannot(ErrorCode::Conflict, text))?;
    check_storage(tx, name, old, meta).map_err(|text| cannot(ErrorCode::Conflict, text))?;
    // What the charm took before, it may go on taking.
    let before = |name| old.storage.get(name).map_or(0, StorageMeta::default_size);
    let mut directives = application.storage.clone();
    directives.extend(with.storage.clone());
    let more = storage::life::unsized_by(meta, &directives)
        .filter(|(name, storage)| storage.count.min > 0 && storage.default_size() > before(name));
    storage::life::check_sizes(tx.state.config(), meta, more)
        .map_err(|refusal| cannot(refusal.code, refusal.message))?;

    let before = application.charm;
    use_charm(tx, digest, meta)?;
    let modified_version = before.modified_version.saturating_add(1);
    application.charm = CharmRef { digest: *digest, modified_version };
    application.force_charm = force;
    application.config = meta.kept_settings(&application.config);
    change_with(tx, caller, &mut application, meta, with)
        .map_err(|refusal| cannot(refusal.code, refusal.message))?;
    application.config_hash = config::config_hash(meta, &application.config, application.charm);
    application.storage.retain(|name, _| meta.storage.contains_key(name));
    // What only the old charm declares is still read by units that run it.
    let declared =
        |name: &ResourceName| meta.resources.contains_key(name) || old.resources.contains_key(name);
    application.resources.retain(|name, _| declared(name));
    tx.put(application);
    if meta.storage.values().any(|storage| storage.count.min > 0) {
        tx.add_work(Work::ProvideStorage { application: name.clone() }, None);
    }
    add_peers(tx, name, meta)?;
    charm::life::release(tx, &before.digest);
    Ok(Answer::Done)
}

/// Settings, storage, resources and trust that come with a charm; the caller notes what units see of it.
fn change_with(
    tx: &Transaction<'_>,
    caller: &Caller,
    application: &mut Application,
    meta: &CharmMeta,
    with: &RefreshWith,
) -> Result<(), Refusal> {
    let (set, reset) = config::change_application(application, meta, &with.config, &[])?;
    let before = application.config.clone();
    application.config = config::change(meta, &before, &set, &reset)?;
    secret::command::check_options(&tx.state, &mut application.config, set.keys())?;
    if application.config != before {
        application.settings_version = application.settings_version.saturating_add(1);
    }
    storage::life::check(meta, &with.storage, |_| 0)?;
    application.storage.extend(with.storage.clone());
    for (name, upload) in &with.resources {
        resource::command::give(tx, caller, application, meta, name, upload)?;
    }
    if with.trust {
        application.trust = true;
        application.trust_hash = config::trust_hash(true);
    }
    Ok(())
}

/// Endpoints that are offered must remain: consumers count on them.
fn check_offers(tx: &Transaction<'_>, application: &Application, new: &CharmMeta) -> Result<(), String> {
    let there = relation::endpoints::all(application, new);
    for offer in tx.state.offers_of(&application.name) {
        let lost = offer.endpoints.iter().find(|name| !there.iter().any(|(end, _)| end.name == **name));
        if let Some(lost) = lost {
            return Err(format!("would take endpoint {lost} from offer {:?}", offer.name.as_str()));
        }
    }
    Ok(())
}

/// U-37: storage in use must remain what it is to its units. The reason names the storage that is in the way.
fn check_storage(
    tx: &Transaction<'_>,
    name: &ApplicationName,
    old: &CharmMeta,
    new: &CharmMeta,
) -> Result<(), String> {
    let mut most: BTreeMap<&StorageName, u32> = BTreeMap::new();
    for unit in tx.state.units_of(name) {
        for storage in tx.state.storages_of(&unit.name) {
            let count = storage::life::count_of(&tx.state, &unit.name, storage.id.name());
            let known = most.entry(storage.id.name()).or_default();
            *known = (*known).max(count);
        }
    }
    for (store, count) in most {
        let text = store.as_str();
        let Some(after) = new.storage.get(store) else {
            return Err(format!("in use storage {text:?} removed"));
        };
        let Some(before) = old.storage.get(store) else { continue };
        if before.read_only != after.read_only {
            let (before, after) = (before.read_only, after.read_only);
            return Err(format!("existing storage {text:?} read-only changed from {before} to {after}"));
        }
        let place = |meta: &StorageMeta| meta.location_of(&StorageId::new(store.clone(), 0));
        if place(before) != place(after) {
            let (before, after) = (place(before), place(after));
            return Err(format!("existing storage {text:?} location changed from {before:?} to {after:?}"));
        }
        if after.count.max.is_some_and(|max| count > max) {
            let range = after.count;
            return Err(format!(
                "existing storage {text:?} range contracted: a unit has {count}, not {range}"
            ));
        }
    }
    Ok(())
}

/// U-37: endpoints in use must remain, and their limits must hold.
fn check_relations(
    tx: &Transaction<'_>,
    name: &ApplicationName,
    meta: &CharmMeta,
    force: bool,
) -> Result<(), (ErrorCode, String)> {
    let mut used: BTreeMap<&EndpointName, u32> = BTreeMap::new();
    for relation in tx.state.relations_of(name).filter(|relation| relation.life != Life::Dead) {
        let Some(end) = relation.end_of(name).filter(|end| end.name.as_str() != JUJU_INFO) else { continue };
        let declared = meta.endpoints.get(&end.name);
        if let Some(reason) = broken_by(relation, end, declared) {
            let text = format!("would break relation {:?}: {reason}", relation.describe());
            return Err((ErrorCode::Conflict, text));
        }
        *used.entry(&end.name).or_default() += 1;
    }
    for (endpoint, count) in used {
        if let Some(limit) =
            relation::endpoints::limit(meta, endpoint).filter(|limit| count > *limit && !force)
        {
            return Err((
                ErrorCode::QuotaExceeded,
                format!(
                    "new charm version imposes a maximum relation limit of {limit} for {name}:{endpoint} \
                     which cannot be satisfied by the number of already established relations ({count})"
                ),
            ));
        }
    }
    Ok(())
}

/// Why an endpoint in use is not what its relation needs; none: it is.
fn broken_by(relation: &Relation, end: &Endpoint, declared: Option<&EndpointMeta>) -> Option<String> {
    let (name, role, interface) = (end.name.as_str(), end.role, &end.interface);
    Some(match declared {
        None => format!("the new charm has no endpoint {name:?}"),
        Some(new) if new.role != role => {
            format!("endpoint {name:?} would be a {}, and is a {role}", new.role)
        }
        Some(new) if new.interface != *interface => {
            format!(
                "endpoint {name:?} would speak {:?}, not {:?}",
                new.interface.as_str(),
                interface.as_str()
            )
        }
        // The other way round nothing changes: who is in a container sees its own principal as before.
        Some(new) if new.scope == Scope::Container && relation.scope == Scope::Global => {
            format!("endpoint {name:?} would have the scope container")
        }
        Some(_) => return None,
    })
}
