//! Refreshing: another charm for an application (`hook-model.md` 1.10).

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, CharmDigest, EndpointName, ErrorCode, Refusal, charm::CharmMeta, command::Answer,
    record::CharmRef, status::Life,
};

use super::{
    deploy::{add_peers, uploaded, use_charm},
    endpoints::{self, JUJU_INFO},
};
use crate::{config, entity::Application, life, transaction::Transaction};

pub(crate) fn refresh(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    digest: &CharmDigest,
    force: bool,
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
        if force && !application.force_charm {
            // The same charm, but now past a hook error (1.9, rule 1).
            application.force_charm = true;
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
    check_relations(tx, name, meta, force).map_err(|(code, text)| cannot(code, text))?;

    let before = application.charm;
    use_charm(tx, digest, meta)?;
    let modified_version = before.modified_version.saturating_add(1);
    application.charm = CharmRef { digest: *digest, modified_version };
    application.force_charm = force;
    application.config = config::carry_over(meta, &application.config);
    application.config_hash = config::config_hash(meta, &application.config, application.charm);
    tx.put(application);
    add_peers(tx, name, meta)?;
    life::charm::release(tx, &before.digest);
    Ok(Answer::Done)
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
        let remains = meta
            .endpoints
            .get(&end.name)
            .is_some_and(|endpoint| endpoint.role == end.role && endpoint.interface == end.interface);
        if !remains {
            return Err((ErrorCode::Conflict, format!("would break relation {:?}", relation.describe())));
        }
        *used.entry(&end.name).or_default() += 1;
    }
    for (endpoint, count) in used {
        if let Some(limit) = endpoints::limit(meta, endpoint).filter(|limit| count > *limit && !force) {
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
