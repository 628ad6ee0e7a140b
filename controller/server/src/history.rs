//! Reads of status history (`docs/hook-model.md` 7.5).

use periapt_host_api::{
    MachineId, Refusal, Timestamp,
    status::{StatusHistoryEntry, StatusHistoryQuery, StatusHistoryType, StatusInfo, StatusKind},
};
use periapt_model::{ModelState, RecordBody, RecordKind, Root, StatusRecord, machine_history};
use periapt_store::{Order, Record, Store, codec, key};

use crate::records::unreadable;

/// The number of records in one read.
const PAGE: usize = 512;
/// The most entries of an answer, which is built in memory.
const MAX_LINES: usize = 10_000;

/// A query for a history, with its entity resolved.
struct HistoryRequest {
    /// The name of the entity's sequence of records.
    entity: String,
    kind: StatusHistoryType,
    lines: usize,
    /// The oldest time: the query's, but not before the creation of the entity, whose name may have belonged to
    /// another one.
    since: Timestamp,
}

/// Returns entries of one history, the oldest first.
///
/// # Errors
/// The entity does not exist, or the store cannot be read.
pub(crate) async fn history(
    store: &dyn Store,
    root: &Root,
    state: &ModelState,
    query: &StatusHistoryQuery,
    lease_now_ms: u64,
) -> Result<Vec<StatusHistoryEntry>, Refusal> {
    let lines =
        query.tail.map_or(MAX_LINES, |tail| usize::try_from(tail).unwrap_or(MAX_LINES).min(MAX_LINES));
    let since = |created: Timestamp| query.since.map_or(created, |since| since.max(created));
    let wanted =
        |entity: String, created| HistoryRequest { entity, kind: query.kind, lines, since: since(created) };
    match query.kind {
        StatusHistoryType::Only(StatusKind::Machine) => {
            let id: MachineId = named(&query.entity)?;
            let machine = state.machine(&id).ok_or_else(|| missing("machine", &query.entity))?;
            let mut entries = machine_history(root, machine, lease_now_ms);
            entries.retain(|entry| query.since.is_none_or(|since| entry.since >= since));
            Ok(entries.split_off(entries.len().saturating_sub(lines)))
        }
        StatusHistoryType::Only(StatusKind::Application) => {
            let application = state
                .application(&named(&query.entity)?)
                .ok_or_else(|| missing("application", &query.entity))?;
            let refreshed = [(StatusKind::Application, application.status_refreshed)];
            read(store, state, wanted(application.name.to_string(), application.created_at), &refreshed).await
        }
        StatusHistoryType::Unit | StatusHistoryType::Only(StatusKind::JujuUnit | StatusKind::Workload) => {
            let unit = state.unit(&named(&query.entity)?).ok_or_else(|| missing("unit", &query.entity))?;
            let refreshed = [
                (StatusKind::Workload, unit.refreshed.workload),
                (StatusKind::JujuUnit, unit.refreshed.agent),
            ];
            read(store, state, wanted(unit.name.to_string(), unit.created_at), &refreshed).await
        }
    }
}

async fn read(
    store: &dyn Store,
    state: &ModelState,
    wanted: HistoryRequest,
    refreshed: &[(StatusKind, Option<Timestamp>)],
) -> Result<Vec<StatusHistoryEntry>, Refusal> {
    let prefix = key::record_prefix(&state.model().uuid, RecordKind::Status, &wanted.entity);
    let mut entries: Vec<StatusHistoryEntry> = Vec::new();
    let mut before = None;
    while entries.len() < wanted.lines {
        let records = store.records(&prefix, Order::NewestFirst { before }, PAGE).await;
        let records = records.map_err(|error| unreadable(&error))?;
        before = records.last().map(|record| record.position);
        let found = records.iter().filter_map(entry).filter(|entry| wanted.kind.admits(entry.kind));
        for mut entry in found {
            let newest = entries.iter().all(|newer| newer.kind != entry.kind);
            let again = refreshed.iter().find(|(kind, _)| *kind == entry.kind).and_then(|(_, at)| *at);
            if let Some(again) = again.filter(|_| newest) {
                entry.since = entry.since.max(again);
            }
            if entry.since >= wanted.since {
                entries.push(entry);
            }
        }
        if records.len() < PAGE {
            break;
        }
    }
    entries.truncate(wanted.lines);
    entries.reverse();
    Ok(entries)
}

fn entry(record: &Record) -> Option<StatusHistoryEntry> {
    match codec::body(record) {
        Ok(RecordBody::Status(status)) => Some(match status {
            StatusRecord::Workload(info) => line(StatusKind::Workload, info),
            StatusRecord::Agent(info) => line(StatusKind::JujuUnit, info),
            StatusRecord::Application(info) => line(StatusKind::Application, info),
        }),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, "a line of a status history cannot be read");
            None
        }
    }
}

fn line<S: ToString>(kind: StatusKind, info: StatusInfo<S>) -> StatusHistoryEntry {
    let StatusInfo { status, message, data, since } = info;
    StatusHistoryEntry { status: status.to_string(), message, data, since, kind }
}

fn named<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|error: T::Err| Refusal::bad_request(error.to_string()))
}

fn missing(what: &str, name: &str) -> Refusal {
    Refusal::not_found(format!("{what} {name:?} not found")).about(format!("{what} {name}"))
}
