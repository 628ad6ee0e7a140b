//! The creation of units.

use periapt_host_api::{
    UnitName,
    command::Placement,
    record::UnitRecord,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    usage::Usage,
};

use crate::{
    entity::{StatusRefreshes, Unit},
    root::changes::{RecordBody, StatusRecord},
    transaction::Transaction,
};

/// Returns a unit that no agent works on yet, and begins its status history.
pub(crate) fn new_unit(tx: &mut Transaction<'_>, name: UnitName, placement: Option<Placement>) -> Unit {
    let now = tx.now();
    let workload_status = StatusInfo::new(WorkloadStatus::Waiting, "waiting for machine", now);
    let agent_status = StatusInfo::new(AgentStatus::Allocating, "", now);
    tx.record(&name, now, RecordBody::Status(StatusRecord::Workload(workload_status.clone())));
    tx.record(&name, now, RecordBody::Status(StatusRecord::Agent(agent_status.clone())));
    Unit {
        name,
        life: Life::Alive,
        machine: None,
        placement,
        principal: None,
        resolved: None,
        record: UnitRecord::default(),
        last_commit: None,
        early_number: 0,
        workload_status,
        agent_status,
        refreshed: StatusRefreshes::default(),
        usage: Usage::default(),
        ports: Vec::new(),
        created_at: now,
    }
}
