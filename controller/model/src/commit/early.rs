//! The early effects of hooks: statuses, versions, messages of tasks, log lines (`docs/design/commit.md`).

use periapt_host_api::{
    ErrorCode, Refusal, Timestamp,
    commit::{EarlyEffect, EarlyItem},
    logs::{LogLevel, LogLine},
    size,
    status::{AgentStatus, StatusInfo},
};

use super::text::truncate;
use crate::{
    entity::{Application, Unit},
    root::changes::RecordBody,
    transaction::Transaction,
};

/// The most items in one call. The runner splits more into several calls.
const MAX_ITEMS: usize = 10_000;

/// The most bytes of each text. Longer texts are cut, not refused: a refusal would block the unit forever.
const MAX_MESSAGE: usize = 4 << 10;
const MAX_LOG_MESSAGE: usize = 64 << 10;
const MAX_MODULE: usize = 256;
const MAX_VERSION: usize = 256;
const MAX_DATA: usize = 16 << 10;

/// Applies the items with numbers above the unit's last one, and drops the others as already applied.
pub(super) fn take(tx: &mut Transaction<'_>, unit: &mut Unit, items: &[EarlyItem]) -> Result<(), Refusal> {
    if items.len() > MAX_ITEMS {
        let text = format!("{} early items at once, at most {MAX_ITEMS} are allowed", items.len());
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("unit {}", unit.name)));
    }
    for item in items {
        if item.number > unit.early_number {
            unit.early_number = item.number;
            take_one(tx, unit, item);
        }
    }
    Ok(())
}

fn take_one(tx: &mut Transaction<'_>, unit: &mut Unit, item: &EarlyItem) {
    let at = item.at;
    match &item.effect {
        EarlyEffect::UnitStatus { status, message } => {
            if !tx.set_workload_status(unit, StatusInfo::new(*status, truncate(message, MAX_MESSAGE), at)) {
                unit.refreshed.workload = Some(at);
            }
        }
        EarlyEffect::AgentStatus { status, message, data } => {
            // ST-5: an assigned unit is never allocating, and lost is always derived.
            if matches!(status, AgentStatus::Allocating | AgentStatus::Lost) {
                return;
            }
            let mut next = StatusInfo::new(*status, truncate(message, MAX_MESSAGE), at);
            if size::of_json(data) <= MAX_DATA {
                next.data = data.clone();
            }
            if !tx.set_agent_status(unit, next) {
                unit.refreshed.agent = Some(at);
            }
        }
        EarlyEffect::ApplicationStatus { status, message, term } => {
            let Some(mut application) = application(tx, unit) else { return };
            let leads = application
                .leader
                .as_ref()
                .is_some_and(|leader| leader.unit == unit.name && leader.term == *term);
            if leads {
                let next = StatusInfo::new(*status, truncate(message, MAX_MESSAGE), at);
                if !tx.set_application_status(&mut application, next) {
                    application.status_refreshed = Some(at);
                }
                tx.put(application);
            } else {
                let text = "status-set --application dropped: this unit is no longer the leader";
                log(tx, unit, at, (LogLevel::Warning, "juju.worker.uniter"), text);
            }
        }
        EarlyEffect::ApplicationVersion { version } => {
            let Some(mut application) = application(tx, unit) else { return };
            application.workload_version = truncate(version, MAX_VERSION).to_owned();
            tx.put(application);
        }
        EarlyEffect::TaskMessage { task, message } => {
            crate::action::commit::message(tx, &unit.name, *task, at, message);
        }
        EarlyEffect::Log { level, module, message } => log(tx, unit, at, (*level, module), message),
    }
}

fn application(tx: &Transaction<'_>, unit: &Unit) -> Option<Application> {
    tx.state.application(unit.name.application()).map(|application| Application::clone(application))
}

/// Adds a line of a module to the unit's log.
pub(super) fn log(
    tx: &mut Transaction<'_>,
    unit: &Unit,
    at: Timestamp,
    (level, module): (LogLevel, &str),
    message: &str,
) {
    let line = LogLine {
        entity: format!("unit-{}-{}", unit.name.application(), unit.name.number()),
        at,
        level,
        module: truncate(module, MAX_MODULE).to_owned(),
        message: truncate(message, MAX_LOG_MESSAGE).trim_end_matches('\n').to_owned(),
    };
    tx.record(&unit.name, at, RecordBody::Log(line));
}
