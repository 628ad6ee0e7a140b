//! The refresh of an application to another charm (`docs/hook-model.md` 1.10).

use periapt_host_api::{
    ApplicationName, Digest, ErrorCode, Level, Refusal, ResourceName,
    charm::{CharmMeta, StorageMeta},
    command::{Answer, Caller, RefreshWith},
    record::CharmRef,
    status::Life,
};

use super::{
    config,
    deploy::{Checks, add_peers, check_assumed, uploaded, use_charm},
};
use crate::{
    charm,
    controller::level,
    entity::{Application, Work},
    resource, secret, storage,
    transaction::Transaction,
};

mod fit;

/// The first level whose programs keep former charms.
const KEEPS_FORMER: Level = Level(2);

pub(crate) fn refresh(
    tx: &mut Transaction<'_>,
    caller: &Caller,
    name: &ApplicationName,
    digest: &Digest,
    checks: Checks,
    with: &RefreshWith,
) -> Result<Answer, Refusal> {
    let force = checks == Checks::Skipped;
    let mut application = Application::clone(&*tx.application(name)?);
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("cannot refresh application {:?}: {reason}", name.as_str()))
            .about(format!("application {name}"))
    };
    if application.life != Life::Alive {
        return Err(cannot(ErrorCode::NotAlive, "application is not alive".to_owned()));
    }
    let meta = uploaded(tx, caller, digest)?;
    if application.charm.digest == *digest {
        // The charm is the same, but force now takes it past a hook error (1.9, rule 1).
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
    check_assumed(meta, checks).map_err(|unmet| cannot(ErrorCode::NotSupported, unmet.to_string()))?;
    fit::check(tx, &application, old, meta, checks)
        .map_err(|unfit| cannot(unfit.code(), unfit.to_string()))?;
    // The new charm may go on using the storage sizes of the old one.
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
    // Units that still run the old charm read resources that only the old charm declares.
    let declared =
        |name: &ResourceName| meta.resources.contains_key(name) || old.resources.contains_key(name);
    application.resources.retain(|name, _| declared(name));
    // Programs below the level would drop the list, and then nothing would remove its charms.
    let mut released = vec![before.digest];
    if tx.root.level() >= KEEPS_FORMER {
        released = charm::life::keep_former(&mut application, before.digest);
    }
    tx.put(application);
    if meta.storage.values().any(|storage| storage.count.min > 0) {
        tx.add_work(Work::ProvideStorage { application: name.clone() }, None);
    }
    add_peers(tx, name, meta)?;
    for digest in released {
        charm::life::release(tx, &digest);
    }
    Ok(Answer::Done)
}

/// Changes the settings, storage, resources and trust given with a refresh. The caller updates the hash that units
/// see.
fn change_with(
    tx: &Transaction<'_>,
    caller: &Caller,
    application: &mut Application,
    meta: &CharmMeta,
    with: &RefreshWith,
) -> Result<(), Refusal> {
    let (set, reset) = config::change_application(application, meta, &with.config, &[])?;
    level::check_limits(tx.root, &application.budgets)?;
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
        application.trust_hash = config::trust_hash(application.trust);
    }
    Ok(())
}
