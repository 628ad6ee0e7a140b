//! The conversion of events to the contract's types.

use std::collections::BTreeSet;

use periapt_host_api::{
    UnitName,
    event::{Event, RelationContext, StorageContext},
    notice::{CUSTOM_NOTICE, NoticeContext},
    secret::{SecretContext, SecretRevision},
};

use super::types;

/// Returns the argument of the handler.
pub(crate) fn invocation(event: &Event, attempt: u32) -> types::Invocation {
    types::Invocation { event: event_of(event), attempt }
}

fn event_of(event: &Event) -> types::Event {
    match event {
        Event::Install => types::Event::Install,
        Event::Start => types::Event::Start,
        Event::Stop => types::Event::Stop,
        Event::Remove => types::Event::Remove,
        Event::ConfigChanged => types::Event::ConfigChanged,
        Event::UpgradeCharm => types::Event::UpgradeCharm,
        Event::UpdateStatus => types::Event::UpdateStatus,
        Event::LeaderElected => types::Event::LeaderElected,
        Event::LeaderSettingsChanged => types::Event::LeaderSettingsChanged,
        Event::RelationCreated(relation) => types::Event::RelationCreated(relation_event(relation)),
        Event::RelationJoined { relation, remote_unit } => {
            types::Event::RelationJoined(types::RelationJoinedEvent {
                endpoint: relation.endpoint.to_string(),
                relation: relation.relation.0,
                remote_application: relation.remote_application.to_string(),
                remote_unit: remote_unit.to_string(),
            })
        }
        Event::RelationChanged { relation, remote_unit } => {
            types::Event::RelationChanged(types::RelationChangedEvent {
                endpoint: relation.endpoint.to_string(),
                relation: relation.relation.0,
                remote_application: relation.remote_application.to_string(),
                remote_unit: remote_unit.as_ref().map(UnitName::to_string),
            })
        }
        Event::RelationDeparted { relation, remote_unit, departing_unit } => {
            types::Event::RelationDeparted(types::RelationDepartedEvent {
                endpoint: relation.endpoint.to_string(),
                relation: relation.relation.0,
                remote_application: relation.remote_application.to_string(),
                remote_unit: remote_unit.to_string(),
                departing_unit: departing_unit.to_string(),
            })
        }
        Event::RelationBatch { relation, batch } => {
            let names = |units: &BTreeSet<UnitName>| units.iter().map(UnitName::to_string).collect();
            types::Event::RelationBatch(types::RelationBatchEvent {
                endpoint: relation.endpoint.to_string(),
                relation: relation.relation.0,
                remote_application: relation.remote_application.to_string(),
                application_changed: batch.application_changed,
                joined: names(&batch.joined),
                changed: names(&batch.changed),
                departed: names(&batch.departed),
            })
        }
        Event::RelationBroken(relation) => types::Event::RelationBroken(relation_event(relation)),
        Event::Action { name, task } => {
            types::Event::Action(types::ActionEvent { name: name.clone(), id: task.to_string() })
        }
        Event::Custom { name, data, .. } => {
            types::Event::Custom(types::CustomEvent { name: name.clone(), json: data.clone() })
        }
        Event::StorageAttached(storage) => types::Event::StorageAttached(storage_event(storage)),
        Event::StorageDetaching(storage) => types::Event::StorageDetaching(storage_event(storage)),
        Event::SecretChanged(secret) => types::Event::SecretChanged(secret_event(secret)),
        Event::SecretRotate(secret) => types::Event::SecretRotate(secret_event(secret)),
        Event::SecretExpired { secret, revision } => {
            types::Event::SecretExpired(secret_revision_event(secret, *revision))
        }
        Event::SecretRemove { secret, revision } => {
            types::Event::SecretRemove(secret_revision_event(secret, *revision))
        }
        Event::PebbleReady { container } => {
            types::Event::PebbleReady(types::WorkloadEvent { workload: container.to_string() })
        }
        Event::PebbleCustomNotice { workload, id, key } => {
            types::Event::PebbleCustomNotice(types::WorkloadNoticeEvent {
                workload: workload.container.to_string(),
                notice_id: id.to_string(),
                notice_type: CUSTOM_NOTICE.to_owned(),
                notice_key: key.clone(),
            })
        }
        Event::PebbleCheckFailed { workload, check } => {
            types::Event::PebbleCheckFailed(check_event(workload, check))
        }
        Event::PebbleCheckRecovered { workload, check } => {
            types::Event::PebbleCheckRecovered(check_event(workload, check))
        }
    }
}

fn check_event(workload: &NoticeContext, check: &str) -> types::WorkloadCheckEvent {
    types::WorkloadCheckEvent { workload: workload.container.to_string(), check: check.to_owned() }
}

fn storage_event(context: &StorageContext) -> types::StorageEvent {
    types::StorageEvent {
        id: context.storage.to_string(),
        name: context.storage.name().to_string(),
        kind: types::StorageKind::Filesystem,
        location: context.location.clone(),
    }
}

fn secret_event(secret: &SecretContext) -> types::SecretEvent {
    types::SecretEvent { uri: secret.id.uri(), label: secret.label.clone() }
}

fn secret_revision_event(secret: &SecretContext, revision: SecretRevision) -> types::SecretRevisionEvent {
    types::SecretRevisionEvent { uri: secret.id.uri(), label: secret.label.clone(), revision: revision.0 }
}

fn relation_event(relation: &RelationContext) -> types::RelationEvent {
    types::RelationEvent {
        endpoint: relation.endpoint.to_string(),
        relation: relation.relation.0,
        remote_application: relation.remote_application.to_string(),
    }
}
