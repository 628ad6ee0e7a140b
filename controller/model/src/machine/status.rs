//! The status of machines.

use std::collections::BTreeMap;

use periapt_host_api::{
    JUJU_VERSION,
    agent::Register,
    status::{MachineStatus, NetworkInterface, StatusHistoryEntry, StatusKind, StatusText},
};

use crate::{
    entity::Machine,
    network::firewall::ingress_rules,
    root::{ModelState, Root},
    status::shown::{NOT_COMMUNICATING, life_text},
};

pub(crate) fn status(root: &Root, state: &ModelState, machine: &Machine, lease_now_ms: u64) -> MachineStatus {
    let host = root.agent(&machine.agent).map(|agent| &agent.host);
    let addresses = host.map(|host| host.addresses.clone()).unwrap_or_default();
    let program = host.and_then(|host| host.program.clone());
    let (current, message, since) = if root.is_alive(&machine.agent, lease_now_ms) {
        ("started", host.map(problems).unwrap_or_default(), machine.created_at)
    } else {
        let since = root.presence(&machine.agent).map(|presence| presence.last_seen);
        ("down", NOT_COMMUNICATING.to_owned(), since.unwrap_or(machine.created_at))
    };
    MachineStatus {
        juju_status: StatusText {
            current: current.to_owned(),
            message,
            since: Some(since),
            version: host.map(|_| JUJU_VERSION.to_owned()).unwrap_or_default(),
        },
        hostname: host.map(|host| host.hostname.clone()).unwrap_or_default(),
        dns_name: addresses.first().cloned().unwrap_or_default(),
        ip_addresses: addresses,
        instance_id: machine.agent.to_string(),
        machine_status: StatusText {
            current: "running".to_owned(),
            since: Some(machine.created_at),
            ..StatusText::default()
        },
        modification_status: StatusText {
            current: "idle".to_owned(),
            since: Some(machine.created_at),
            ..StatusText::default()
        },
        base: Default::default(),
        network_interfaces: host.map(|host| network_interfaces(state, host)).unwrap_or_default(),
        life: life_text(machine.life),
        hardware: host.map(hardware).unwrap_or_default(),
        ingress_rules: ingress_rules(state, &machine.id),
        program,
    }
}

/// Returns the problems of an agent at work: rules that its host's firewall lacks, what the host lacks for containers, and a
/// program that it did not take.
fn problems(host: &Register) -> String {
    let failed = host.program.as_ref().and_then(|program| program.failed.as_ref()).map(ToString::to_string);
    let of_host = [&host.firewall_problem, &host.container_problem].into_iter().flatten().cloned();
    of_host.chain(failed).collect::<Vec<_>>().join("; ")
}

/// Returns the interfaces of a host, each with the space of its first address.
fn network_interfaces(state: &ModelState, host: &Register) -> BTreeMap<String, NetworkInterface> {
    let spaces = &state.model().spaces;
    let shown = host.interfaces.iter().map(|interface| {
        let space = interface.addresses.first().map(|first| spaces.of(first.address).to_owned());
        let shown = NetworkInterface {
            ip_addresses: interface.addresses.iter().map(|at| at.address.to_string()).collect(),
            mac_address: interface.mac.clone(),
            space: space.unwrap_or_default(),
            is_up: true,
        };
        (interface.name.clone(), shown)
    });
    shown.collect()
}

/// Returns the hardware as in `cores=4 availability-zone=z1`, without the parts that the agent did not report.
fn hardware(host: &Register) -> String {
    let cores = (host.cores > 0).then(|| format!("cores={}", host.cores));
    let zone = Some(&host.availability_zone).filter(|zone| !zone.is_empty());
    let zone = zone.map(|zone| format!("availability-zone={zone}"));
    cores.into_iter().chain(zone).collect::<Vec<_>>().join(" ")
}
/// Returns a machine's status history, the oldest entry first: started at its creation, and down while its agent is
/// away.
pub fn machine_history(root: &Root, machine: &Machine, lease_now_ms: u64) -> Vec<StatusHistoryEntry> {
    let entry = |status: &str, message: &str, since| StatusHistoryEntry {
        status: status.to_owned(),
        message: message.to_owned(),
        data: serde_json::Map::new(),
        since,
        kind: StatusKind::Machine,
    };
    let mut entries = vec![entry("started", "", machine.created_at)];
    if !root.is_alive(&machine.agent, lease_now_ms) {
        let since = root.presence(&machine.agent).map(|presence| presence.last_seen);
        entries.push(entry("down", NOT_COMMUNICATING, since.unwrap_or(machine.created_at)));
    }
    entries
}
