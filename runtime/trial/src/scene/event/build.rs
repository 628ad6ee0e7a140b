//! The event of a scene's unit, from what the scene says of it.

use periapt_host_api::{
    EventId, TaskId,
    charm::CharmMeta,
    event::{Event, RelationBatch, RelationContext, StorageContext},
    notice::{MAX_NOTICE_KEY_BYTES, NoticeContext},
    secret::{SecretContext, SecretOwner},
};

use super::{
    super::{Scene, SceneError, check, declared},
    BatchScene, EventKind, EventScene, NoticeScene,
};

/// The task id of every action in a trial.
const TASK: TaskId = TaskId(1);

/// Builds the event of a scene's unit.
pub(crate) fn event(scene: &Scene, meta: &CharmMeta) -> Result<Event, SceneError> {
    let told = &scene.event;
    match told.kind {
        EventKind::Action if meta.actions.contains_key(&told.hook) => {
            return Ok(Event::Action { name: told.hook.clone(), task: TASK });
        }
        EventKind::Action => {
            return Err(SceneError::Undeclared { what: "action", name: told.hook.clone() });
        }
        EventKind::Custom => {
            let (name, data) = (told.hook.clone(), told.data.to_string());
            return Ok(Event::Custom { id: EventId(1), name, data });
        }
        EventKind::Hook => {}
    }
    if let Some(plain) = plain(&told.hook) {
        return Ok(plain);
    }
    if told.hook.starts_with("secret-") {
        return secret_event(scene);
    }
    if let Some(name) = told.hook.strip_suffix("-storage-attached") {
        return storage_context(scene, meta, name).map(Event::StorageAttached);
    }
    if let Some(name) = told.hook.strip_suffix("-storage-detaching") {
        return storage_context(scene, meta, name).map(Event::StorageDetaching);
    }
    if let Some((name, kind)) = told.hook.rsplit_once("-pebble-") {
        return workload_event(told, meta, name, kind);
    }
    relation_event(scene)
}

fn workload_event(told: &EventScene, meta: &CharmMeta, name: &str, kind: &str) -> Result<Event, SceneError> {
    let declared = meta.containers.keys().find(|container| container.as_str() == name).cloned();
    let container =
        declared.ok_or_else(|| SceneError::Undeclared { what: "container", name: name.to_owned() })?;
    let origin = |container| NoticeContext { container, boot_id: String::new(), number: 1 };
    let check = || match &told.check {
        Some(check) if check.len() <= MAX_NOTICE_KEY_BYTES => Ok(check.clone()),
        _ => Err(lacks(told, "check")),
    };
    Ok(match kind {
        "ready" => Event::PebbleReady { container },
        "custom-notice" => {
            let notice = told.notice.as_ref().filter(|notice| notice.key.len() <= MAX_NOTICE_KEY_BYTES);
            let NoticeScene { id, key } = notice.ok_or_else(|| lacks(told, "notice"))?.clone();
            Event::PebbleCustomNotice { workload: origin(container), id, key }
        }
        "check-failed" => Event::PebbleCheckFailed { workload: origin(container), check: check()? },
        "check-recovered" => Event::PebbleCheckRecovered { workload: origin(container), check: check()? },
        _ => return Err(unknown(told)),
    })
}

fn plain(hook: &str) -> Option<Event> {
    Some(match hook {
        "install" => Event::Install,
        "start" => Event::Start,
        "stop" => Event::Stop,
        "remove" => Event::Remove,
        "config-changed" => Event::ConfigChanged,
        "upgrade-charm" => Event::UpgradeCharm,
        "update-status" => Event::UpdateStatus,
        "leader-elected" => Event::LeaderElected,
        "leader-settings-changed" => Event::LeaderSettingsChanged,
        _ => return None,
    })
}

fn lacks(told: &EventScene, what: &str) -> SceneError {
    SceneError::Contradiction(format!("event {} needs its {what}", told.hook))
}

fn unknown(told: &EventScene) -> SceneError {
    SceneError::Contradiction(format!("there is no hook {:?}", told.hook))
}

fn relation_event(scene: &Scene) -> Result<Event, SceneError> {
    let told = &scene.event;
    let (endpoint, kind) = told.hook.split_once("-relation-").ok_or_else(|| unknown(told))?;
    let id = told.relation.ok_or_else(|| lacks(told, "relation"))?;
    let found = scene.relations.iter().find(|relation| relation.id == id);
    let found = found.ok_or_else(|| {
        SceneError::Contradiction(format!("the event is about relation {id}, which the scene lacks"))
    })?;
    if found.endpoint.as_str() != endpoint {
        return Err(SceneError::Contradiction(format!(
            "the event is about relation {id} at endpoint {endpoint}, which has endpoint {}",
            found.endpoint
        )));
    }
    let remote = found.remote_application.as_ref().unwrap_or(scene.unit.application());
    check::batch(scene, found, remote)?;
    let relation = RelationContext {
        endpoint: found.endpoint.clone(),
        relation: id,
        remote_application: remote.clone(),
    };
    let remote_unit = || match &told.remote_unit {
        Some(unit) => check::remote_unit(scene, found, remote, unit).map(|()| unit.clone()),
        None => Err(lacks(told, "remote-unit")),
    };
    // The departing unit may be the unit itself.
    if let Some(unit) = told.departing_unit.as_ref().filter(|unit| **unit != scene.unit) {
        check::remote_unit(scene, found, remote, unit)?;
    }
    Ok(match kind {
        "created" => Event::RelationCreated(relation),
        "joined" => Event::RelationJoined { relation, remote_unit: remote_unit()? },
        "changed" => {
            let remote_unit = told.remote_unit.as_ref().map(|_| remote_unit()).transpose()?;
            Event::RelationChanged { relation, remote_unit }
        }
        "departed" => {
            let remote_unit = remote_unit()?;
            let departing_unit = told.departing_unit.clone().unwrap_or_else(|| remote_unit.clone());
            Event::RelationDeparted { relation, remote_unit, departing_unit }
        }
        "broken" => Event::RelationBroken(relation),
        "batch" => {
            let BatchScene { application_changed, joined, changed, departed } =
                told.batch.clone().ok_or_else(|| lacks(told, "batch"))?;
            let departing_unit = told.departing_unit.clone();
            let batch = RelationBatch { application_changed, joined, changed, departed, departing_unit };
            Event::RelationBatch { relation, batch }
        }
        _ => return Err(unknown(told)),
    })
}

fn storage_context(scene: &Scene, meta: &CharmMeta, name: &str) -> Result<StorageContext, SceneError> {
    let told = &scene.event;
    let id = told.storage.as_ref().ok_or_else(|| lacks(told, "storage"))?;
    if id.name().as_str() != name || !scene.storages.iter().any(|storage| storage.id == *id) {
        let text = format!("event {} is about storage {id}, which the scene lacks", told.hook);
        return Err(SceneError::Contradiction(text));
    }
    let location = declared(meta, id)?.location_of(id);
    Ok(StorageContext { storage: id.clone(), location })
}

fn secret_event(scene: &Scene) -> Result<Event, SceneError> {
    let told = &scene.event;
    let id = told.secret.ok_or_else(|| lacks(told, "secret"))?;
    let secret = scene.secrets.iter().find(|secret| secret.id == id).ok_or_else(|| {
        SceneError::Contradiction(format!("the event is about secret {id}, which the scene lacks"))
    })?;
    let revision = || told.revision.ok_or_else(|| lacks(told, "revision"));
    let is_owned = match &secret.owner {
        SecretOwner::Unit(owner) => *owner == scene.unit,
        SecretOwner::Application(owner) => owner == scene.unit.application(),
        SecretOwner::Model => false,
    };
    if told.hook != "secret-changed" && !is_owned {
        let text = format!(
            "{} is told to the owner of a secret, which {} is not of secret {id}; secret-changed is told to readers",
            told.hook, scene.unit
        );
        return Err(SceneError::Contradiction(text));
    }
    let owned = SecretContext { id, label: secret.label.clone() };
    Ok(match told.hook.as_str() {
        "secret-changed" => Event::SecretChanged(SecretContext { id, label: secret.consumer_label.clone() }),
        "secret-rotate" => Event::SecretRotate(owned),
        "secret-expired" => Event::SecretExpired { secret: owned, revision: revision()? },
        "secret-remove" => Event::SecretRemove { secret: owned, revision: revision()? },
        _ => return Err(unknown(told)),
    })
}
