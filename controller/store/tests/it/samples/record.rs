//! Records: log lines, status history, and journals of every event and outcome.

use periapt_host_api::{
    EventId, RelationId, Revision, TaskId,
    event::{Event, RelationBatch, RelationContext, StorageContext},
    journal::{HookCosts, HookOutcome, JournalRecord, RecordedCall, RecordedCalls, Unrecorded},
    logs::{LogLevel, LogLine},
    notice::NoticeContext,
    secret::{SecretContext, SecretId, SecretRevision},
    status::{AgentStatus, StatusInfo, WorkloadStatus},
};
use periapt_model::changes::{RecordBody, StatusRecord};

use super::{Named, awkward_text, digest, every, parse, time};

pub(crate) fn logs() -> Named<RecordBody> {
    let levels = every!(LogLevel {
        "trace": LogLevel::Trace => LogLevel::Trace,
        "debug": LogLevel::Debug => LogLevel::Debug,
        "info": LogLevel::Info => LogLevel::Info,
        "warning": LogLevel::Warning => LogLevel::Warning,
        "error": LogLevel::Error => LogLevel::Error,
    });
    let line = |level| LogLine {
        entity: "unit-wordpress-10".into(),
        at: time(60),
        level,
        module: "unit.wordpress/10.juju-log".into(),
        message: awkward_text(),
    };
    levels.into_iter().map(|(name, level)| (name, RecordBody::Log(line(level)))).collect()
}

pub(crate) fn statuses() -> Named<RecordBody> {
    let workload = every!(WorkloadStatus {
        "workload-error": WorkloadStatus::Error => WorkloadStatus::Error,
        "workload-blocked": WorkloadStatus::Blocked => WorkloadStatus::Blocked,
        "workload-maintenance": WorkloadStatus::Maintenance => WorkloadStatus::Maintenance,
        "workload-waiting": WorkloadStatus::Waiting => WorkloadStatus::Waiting,
        "workload-active": WorkloadStatus::Active => WorkloadStatus::Active,
        "workload-terminated": WorkloadStatus::Terminated => WorkloadStatus::Terminated,
        "workload-unknown": WorkloadStatus::Unknown => WorkloadStatus::Unknown,
    });
    let agent = every!(AgentStatus {
        "agent-allocating": AgentStatus::Allocating => AgentStatus::Allocating,
        "agent-executing": AgentStatus::Executing => AgentStatus::Executing,
        "agent-idle": AgentStatus::Idle => AgentStatus::Idle,
        "agent-error": AgentStatus::Error => AgentStatus::Error,
        "agent-failed": AgentStatus::Failed => AgentStatus::Failed,
        "agent-lost": AgentStatus::Lost => AgentStatus::Lost,
    });
    let application = StatusInfo {
        status: WorkloadStatus::Blocked,
        message: awkward_text(),
        data: status_data(),
        since: time(61),
    };
    let mut records = every!(StatusRecord {
        "workload": StatusRecord::Workload(_) => StatusRecord::Workload(application.clone()),
        "agent": StatusRecord::Agent(_) => StatusRecord::Agent(StatusInfo {
            status: AgentStatus::Executing,
            message: "running install hook".into(),
            data: status_data(),
            since: time(62),
        }),
        "application": StatusRecord::Application(_) => StatusRecord::Application(application.clone()),
    });
    records.extend(
        workload
            .into_iter()
            .map(|(name, status)| (name, StatusRecord::Workload(StatusInfo::new(status, "", time(63))))),
    );
    records.extend(
        agent
            .into_iter()
            .map(|(name, status)| (name, StatusRecord::Agent(StatusInfo::new(status, "", time(64))))),
    );
    records.into_iter().map(|(name, record)| (name, RecordBody::Status(record))).collect()
}

pub(crate) fn hooks() -> Named<RecordBody> {
    let outcomes = every!(HookOutcome {
        "handled": HookOutcome::Handled => HookOutcome::Handled,
        "unhandled": HookOutcome::Unhandled => HookOutcome::Unhandled,
        "skipped": HookOutcome::Skipped => HookOutcome::Skipped,
        "moot": HookOutcome::Moot => HookOutcome::Moot,
        "failed": HookOutcome::Failed { .. } => HookOutcome::Failed { message: awkward_text() },
    });
    let mut records: Named<JournalRecord> =
        events().into_iter().map(|(name, event)| (name, short(event, HookOutcome::Handled))).collect();
    let changed = || Event::RelationChanged { relation: relation(), remote_unit: None };
    records.extend(outcomes.into_iter().map(|(name, outcome)| (name, full(changed(), outcome))));
    let mut long = full(changed(), HookOutcome::Handled);
    let streams = [("port 8080".into(), 12), ("web".into(), 1_048_576)].into();
    long.calls.unrecorded = Unrecorded { limit: 262_144, streams };
    records.push(("with-unrecorded-streams", long));
    records.into_iter().map(|(name, record)| (name, RecordBody::Journal(Box::new(record)))).collect()
}

fn events() -> Named<Event> {
    let remote = || parse("mysql/0");
    every!(Event {
        "install": Event::Install => Event::Install,
        "start": Event::Start => Event::Start,
        "stop": Event::Stop => Event::Stop,
        "remove": Event::Remove => Event::Remove,
        "config-changed": Event::ConfigChanged => Event::ConfigChanged,
        "upgrade-charm": Event::UpgradeCharm => Event::UpgradeCharm,
        "update-status": Event::UpdateStatus => Event::UpdateStatus,
        "leader-elected": Event::LeaderElected => Event::LeaderElected,
        "leader-settings-changed": Event::LeaderSettingsChanged => Event::LeaderSettingsChanged,
        "relation-created": Event::RelationCreated(_) => Event::RelationCreated(relation()),
        "relation-joined": Event::RelationJoined { .. } =>
            Event::RelationJoined { relation: relation(), remote_unit: remote() },
        "relation-changed": Event::RelationChanged { .. } =>
            Event::RelationChanged { relation: relation(), remote_unit: Some(remote()) },
        "relation-departed": Event::RelationDeparted { .. } => Event::RelationDeparted {
            relation: relation(),
            remote_unit: remote(),
            departing_unit: parse("wordpress/10"),
        },
        "relation-batch": Event::RelationBatch { .. } =>
            Event::RelationBatch { relation: relation(), batch: batch() },
        "relation-broken": Event::RelationBroken(_) => Event::RelationBroken(relation()),
        "custom": Event::Custom { .. } =>
            Event::Custom { id: EventId(3), name: "look-again".into(), data: "{\"tries\": 2}".into() },
        "action": Event::Action { .. } => Event::Action { name: "backup".into(), task: TaskId(2) },
        "storage-attached": Event::StorageAttached(_) => Event::StorageAttached(storage()),
        "storage-detaching": Event::StorageDetaching(_) => Event::StorageDetaching(storage()),
        "secret-changed": Event::SecretChanged(_) => Event::SecretChanged(secret()),
        "secret-rotate": Event::SecretRotate(_) => Event::SecretRotate(secret()),
        "secret-expired": Event::SecretExpired { .. } =>
            Event::SecretExpired { secret: secret(), revision: SecretRevision(2) },
        "secret-remove": Event::SecretRemove { .. } =>
            Event::SecretRemove { secret: secret(), revision: SecretRevision(2) },
        "pebble-ready": Event::PebbleReady { .. } => Event::PebbleReady { container: parse("web") },
        "pebble-custom-notice": Event::PebbleCustomNotice { .. } =>
            Event::PebbleCustomNotice { workload: workload(), id: 3, key: "example.com/done".into() },
        "pebble-check-failed": Event::PebbleCheckFailed { .. } =>
            Event::PebbleCheckFailed { workload: workload(), check: "up".into() },
        "pebble-check-recovered": Event::PebbleCheckRecovered { .. } =>
            Event::PebbleCheckRecovered { workload: workload(), check: "up".into() },
    })
}

/// Returns the relation of the samples' events.
pub(crate) fn relation() -> RelationContext {
    RelationContext { endpoint: parse("db"), relation: RelationId(2), remote_application: parse("mysql") }
}

fn workload() -> NoticeContext {
    NoticeContext {
        container: parse("web"),
        boot_id: "4fa3c1b2-9d54-4a0e-8a51-5a3c6f0d9be7".into(),
        number: 12,
    }
}

fn batch() -> RelationBatch {
    RelationBatch {
        application_changed: true,
        joined: [parse("mysql/0"), parse("mysql/11")].into(),
        changed: [parse("mysql/3")].into(),
        departed: [parse("mysql/4")].into(),
        departing_unit: Some(parse("wordpress/10")),
    }
}

fn storage() -> StorageContext {
    StorageContext { storage: parse("data/3"), location: "/srv/data".into() }
}

/// Returns a status's data with all types of JSON.
pub(crate) fn status_data() -> serde_json::Map<String, serde_json::Value> {
    let data = serde_json::json!({
        "hook": "db-relation-changed", "relation-id": 2, "load": -1.5, "ok": false, "none": null,
        "units": ["mysql/0", {"nested": []}],
    });
    data.as_object().unwrap().clone()
}

fn secret() -> SecretContext {
    SecretContext { id: SecretId::from_bytes([7; 12]), label: Some("db \"1\"".into()) }
}

fn short(event: Event, outcome: HookOutcome) -> JournalRecord {
    JournalRecord {
        seq: 41,
        event,
        attempt: 1,
        snapshot: Revision(1_000),
        charm: digest("wordpress"),
        component: digest("component"),
        engine: "wasmtime 48.0.0".into(),
        started_at: time(65),
        outcome,
        costs: HookCosts { fuel: 0, memory: 0, wall_us: 0, host_calls: 0, log_bytes: 0 },
        coalesced: vec![],
        calls: RecordedCalls::default(),
        seed: "00".repeat(32),
        sealed: None,
    }
}

fn full(event: Event, outcome: HookOutcome) -> JournalRecord {
    let call = |function: &str, arguments: &str, answer| RecordedCall {
        function: function.into(),
        arguments: arguments.into(),
        answer,
    };
    JournalRecord {
        attempt: 3,
        costs: HookCosts { fuel: u64::MAX, memory: 65_536, wall_us: 1_250, host_calls: 3, log_bytes: 80 },
        coalesced: vec!["db-relation-changed mysql/0 (version 11)".into()],
        calls: RecordedCalls {
            calls: vec![call("relations.get", "[2,\"mysql/0\"]", 1), call("config.get", "[]", 0)],
            answers: vec!["{\"title\":\"x\"}".into(), "null".into()],
            secrets: vec![],
            omitted: 1,
            unrecorded: Unrecorded::default(),
        },
        ..short(event, outcome)
    }
}
