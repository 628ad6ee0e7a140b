//! The state of a unit's workloads, for display.

use std::collections::BTreeMap;

use periapt_host_api::{
    ContainerName, Refusal, ResourceName,
    charm::CharmMeta,
    container::{
        CheckState, ContainerDetails, ContainerImage, ContainerReport, ContainerState, MAX_FORWARDED_PORTS,
        ReportedDriver, ServiceCurrent, ServiceState, TakenPort, WorkloadsReport,
    },
    firewall::tcp_ports,
    ports::Transport,
};

use crate::{
    entity::{ReportedWorkloads, Unit},
    network::firewall::rules_of_unit,
    root::{ModelState, Root},
};

/// The most problems of one unit that `status` lists.
const MAX_PROBLEMS: usize = 10;

/// Returns the last report of the unit's present agent, if that agent is alive.
fn reported<'a>(
    root: &Root,
    state: &'a ModelState,
    unit: &Unit,
    lease_now_ms: u64,
) -> Option<&'a ReportedWorkloads> {
    let agent = state.agent_of(unit).filter(|agent| root.is_alive(agent, lease_now_ms))?;
    state.workloads_of(&unit.name).map(AsRef::as_ref).filter(|reported| reported.agent == *agent)
}

/// Checks that the charm that a unit runs, or will run first, declares a container.
///
/// # Errors
/// It declares no such container; the message names those that it declares.
pub fn check_container(
    root: &Root,
    state: &ModelState,
    unit: &Unit,
    container: &ContainerName,
) -> Result<(), Refusal> {
    let meta = charm_of(root, state, unit);
    if meta.is_some_and(|meta| meta.containers.contains_key(container)) {
        return Ok(());
    }
    let names: Vec<_> =
        meta.into_iter().flat_map(|meta| meta.containers.keys().map(ContainerName::as_str)).collect();
    let others = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let (unit, container) = (&unit.name, container.as_str());
    let text =
        format!("the charm of unit {unit:?} declares no container {container:?}; it declares {others}");
    Err(Refusal::not_found(text))
}

/// Returns true if workloads of a unit may run on its agent: the charm that it runs or will run first declares some,
/// its application's present charm does, or an agent has reported some.
pub(crate) fn may_run(root: &Root, state: &ModelState, unit: &Unit) -> bool {
    let declares = |meta: &CharmMeta| !meta.containers.is_empty();
    let wanted = || root.charm(&state.application(unit.name.application())?.charm.digest);
    charm_of(root, state, unit).is_some_and(declares)
        || wanted().is_some_and(|charm| declares(&charm.meta))
        || state.workloads_of(&unit.name).is_some_and(|reported| !reported.report.containers.is_empty())
}

/// Returns the charm that a unit runs, or will run first.
fn charm_of<'a>(root: &'a Root, state: &ModelState, unit: &Unit) -> Option<&'a CharmMeta> {
    let wanted = || Some(state.application(unit.name.application())?.charm);
    let charm = unit.record.charm.or_else(wanted)?;
    root.charm(&charm.digest).map(|charm| &charm.meta)
}

/// Returns the containers that a unit's charm declares, with what its agent reports of them, and the ports that are
/// taken.
pub fn shown_workloads(
    root: &Root,
    state: &ModelState,
    unit: &Unit,
    lease_now_ms: u64,
) -> (BTreeMap<ContainerName, ContainerDetails>, Vec<TakenPort>) {
    let application = state.application(unit.name.application());
    let meta = charm_of(root, state, unit);
    let reported = reported(root, state, unit, lease_now_ms).map(|reported| &reported.report);
    let container = |name: &ContainerName, resource: Option<&ResourceName>| {
        let report = reported.and_then(|reported| reported.containers.get(name)).cloned();
        let revisions = application.zip(resource).and_then(|(application, resource)| {
            let attached = application.resources.get(resource)?;
            let former = attached.former.iter().map(|former| &former.content);
            Some((&attached.current, former.chain([&attached.current]).collect::<Vec<_>>()))
        });
        // The image that runs, which may be a former one; before that the one that will.
        let content = report.as_ref().and_then(|report| report.content);
        let revision = revisions.and_then(|(current, all)| match content {
            Some(digest) => all.into_iter().rev().find(|revision| revision.digest == digest),
            None => Some(current),
        });
        let image = revision.map(|revision| ContainerImage {
            resource: resource.cloned(),
            revision: revision.revision,
            digest: revision.image.as_ref().map(|image| image.digest),
            reference: revision.reference.as_ref().map(|name| name.as_str().to_owned()),
        });
        (name.clone(), ContainerDetails { image, report })
    };
    let containers = meta.into_iter().flat_map(|meta| &meta.containers);
    let containers = containers.map(|(name, declared)| container(name, declared.resource.as_ref()));
    (containers.collect(), reported.map(|reported| reported.taken_ports.clone()).unwrap_or_default())
}

/// Returns what is wrong with a unit's workloads, in words: containers, services and checks that are down, and ports
/// that are taken or not forwarded.
pub(crate) fn problems(root: &Root, state: &ModelState, unit: &Unit, lease_now_ms: u64) -> Vec<String> {
    let Some(ReportedWorkloads { report, .. }) = reported(root, state, unit, lease_now_ms) else {
        return Vec::new();
    };
    let mut problems: Vec<String> =
        report.containers.iter().flat_map(|(name, container)| of_container(name, container)).collect();
    problems.extend(report.taken_ports.iter().map(|TakenPort { port, address, reason }| {
        format!("port {port} is not listened on at {address}: {reason}")
    }));
    problems.extend(not_forwarded(state, unit, report));
    if problems.len() > MAX_PROBLEMS {
        let more = problems.len() - MAX_PROBLEMS;
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {more} more"));
    }
    problems
}

/// Returns the ports of a unit that are open to other hosts and lead to none of its workloads, in words. The model and
/// the drivers say so: agents do not report it.
fn not_forwarded(state: &ModelState, unit: &Unit, report: &WorkloadsReport) -> Vec<String> {
    let mut drivers = report.containers.values().filter_map(|container| container.driver).peekable();
    // A process of the driver `plain` listens on the host itself.
    if drivers.peek().is_none() || drivers.any(|driver| driver == ReportedDriver::Plain) {
        return Vec::new();
    }
    let rules = rules_of_unit(state, unit);
    let others = rules.keys().filter(|range| !matches!(range.ports(), Some((Transport::Tcp, ..))));
    let mut problems: Vec<String> =
        others.map(|range| format!("{range} is open and not forwarded: agents forward TCP alone")).collect();
    problems.extend(tcp_ports(&rules).nth(MAX_FORWARDED_PORTS).map(|port| {
        format!("TCP ports from {port} on are open and not forwarded: agents forward {MAX_FORWARDED_PORTS} of a unit")
    }));
    problems
}

fn of_container(name: &ContainerName, container: &ContainerReport) -> Vec<String> {
    if let ContainerState::Down { reason } = &container.state {
        return vec![format!("container {name} does not run: {reason}")];
    }
    let services = container.pod.services.iter().filter(|service| service.is_down());
    let checks = container.pod.checks.iter().filter(|check| check.is_down());
    let service = |ServiceState { name: service, current, restarts, cannot_start, .. }: &ServiceState| match (
        cannot_start,
        current,
    ) {
        (Some(reason), _) => format!("service {service} of container {name} does not start: {reason}"),
        (None, ServiceCurrent::Backoff) => {
            format!(
                "service {service} of container {name} ended, and is started again (restarts: {restarts})"
            )
        }
        (None, _) => format!("service {service} of container {name} ended with an error"),
    };
    let check = |CheckState { name: check, threshold, .. }: &CheckState| {
        format!("check {check} of container {name} failed {threshold} times or more")
    };
    services.map(service).chain(checks.map(check)).collect()
}
