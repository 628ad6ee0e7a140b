//! The reports of agents.

use periapt_host_api::{
    AgentName, Refusal,
    charm::MAX_CONTAINERS,
    container::{MAX_TAKEN_PORTS, MAX_WORKLOADS_BYTES, WorkloadsReport},
};

use crate::{
    entity::{ModelKey, ReportedWorkloads, Unit},
    transaction::{Transaction, json_size},
};

/// Keeps the state of a unit's workloads, instead of the one before, and adds up what it counts.
pub(crate) fn report(
    tx: &mut Transaction<'_>,
    agent: &AgentName,
    unit: &Unit,
    report: &WorkloadsReport,
) -> Result<(), Refusal> {
    let name = &unit.name;
    let is_large = report.containers.len() > MAX_CONTAINERS
        || report.taken_ports.len() > MAX_TAKEN_PORTS
        || json_size(report) > MAX_WORKLOADS_BYTES;
    if is_large {
        let text = format!("the state of a unit's workloads has more than {MAX_WORKLOADS_BYTES} bytes");
        return Err(Refusal::bad_request(text).about(format!("unit {name}")));
    }
    let before = tx.state.workloads_of(name);
    let mut counts = before.map(|before| before.counts).unwrap_or_default();
    counts.count(report, before.map(|before| &before.report));
    if *report == WorkloadsReport::default() && counts.is_none() {
        if before.is_some() {
            tx.delete(ModelKey::Workloads(name.clone()));
        }
        return Ok(());
    }
    if before.is_some_and(|before| before.agent == *agent && before.report == *report) {
        return Ok(());
    }
    let (unit, at) = (name.clone(), tx.now());
    tx.put(ReportedWorkloads { unit, agent: agent.clone(), at, report: report.clone(), counts });
    Ok(())
}
