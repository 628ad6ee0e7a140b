//! The open ports of a model's machines on this agent, from the frames that the keeper forwards.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    MachineId, UnitName,
    firewall::IngressRules,
    ports::PortRange,
    view::{FrameLine, MachineView, ViewEntity, ViewKey},
};

/// The ports of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MachinePorts {
    /// The ranges that each unit on the machine has open.
    pub(super) open: BTreeMap<UnitName, BTreeSet<PortRange>>,
    /// The traffic that the machine's firewall admits.
    pub(super) admitted: IngressRules,
}

impl MachinePorts {
    fn of(machine: &MachineView) -> Self {
        let ranges = machine.ports.iter().map(|(unit, opened)| {
            let ranges: BTreeSet<PortRange> = opened.iter().map(|opened| opened.range).collect();
            (unit.clone(), ranges)
        });
        let open = ranges.filter(|(_, ranges)| !ranges.is_empty()).collect();
        Self { open, admitted: machine.ingress.clone() }
    }
}

/// The machines of one model, as its view says.
#[derive(Debug, Default)]
pub(crate) struct WantedPorts {
    /// None before the first view.
    machines: Option<BTreeMap<MachineId, MachinePorts>>,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<BTreeMap<MachineId, MachinePorts>>,
    /// True if a line of an unfinished frame changed something.
    is_changed: bool,
}

impl WantedPorts {
    /// Records the changes of a frame's line. Returns the machines after the last line of a frame that changed their ports,
    /// and of the first view.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> Option<Vec<MachinePorts>> {
        let coming = self.coming.take();
        if line.from.is_some() {
            let machines = self.machines.as_mut()?;
            self.is_changed |= note(machines, line);
        } else {
            let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
            note(&mut coming, line);
            if !line.is_last() {
                self.coming = Some(coming);
                return None;
            }
            let coming = Some(coming);
            self.is_changed |= self.machines != coming;
            self.machines = coming;
        }
        if !line.is_last() || !std::mem::take(&mut self.is_changed) {
            return None;
        }
        self.machines.as_ref().map(|machines| machines.values().cloned().collect())
    }
}

/// Records a line, and returns true if it changed the ports of a machine.
fn note(machines: &mut BTreeMap<MachineId, MachinePorts>, line: &FrameLine) -> bool {
    let mut is_changed = false;
    for key in &line.deletes {
        if let ViewKey::Machine(id) = key {
            is_changed |= machines.remove(id).is_some();
        }
    }
    for entity in &line.puts {
        if let ViewEntity::Machine(machine) = entity {
            let ports = MachinePorts::of(machine);
            if machines.get(&machine.id) != Some(&ports) {
                machines.insert(machine.id, ports);
                is_changed = true;
            }
        }
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{AgentName, ports::OpenedPorts, view::LineNumber};

    use super::*;
    use crate::keeper::tests::fake::frame;

    /// Returns a machine with one unit that has a range open, which some subnet may reach.
    fn machine(id: u64, range: &str, from: &str) -> ViewEntity {
        let range: PortRange = range.parse().unwrap();
        let opened = OpenedPorts { range, endpoints: BTreeSet::new() };
        ViewEntity::Machine(MachineView {
            id: MachineId(id.try_into().unwrap()),
            agent: "host".parse::<AgentName>().unwrap(),
            boot_id: String::new(),
            addresses: Vec::new(),
            interfaces: Vec::new(),
            addresses_hash: String::new(),
            availability_zone: String::new(),
            ports: [("app/0".parse().unwrap(), vec![opened])].into(),
            ingress: [(range, [from.parse().unwrap()].into())].into(),
            unit_ingress: BTreeMap::new(),
        })
    }

    fn ranges(machines: Option<Vec<MachinePorts>>) -> Option<Vec<String>> {
        let of = |machine: &MachinePorts| {
            machine.open.values().flatten().map(ToString::to_string).collect::<String>()
        };
        machines.map(|machines| machines.iter().map(of).collect())
    }

    fn some(texts: &[&str]) -> Option<Vec<String>> {
        Some(texts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_view_is_told_when_it_changes_the_ports_of_a_machine_and_the_first_one_always() {
        let mut wanted = WantedPorts::default();
        let change = |puts| frame(Some(1), 2, puts);
        assert_eq!(wanted.observe(&change(vec![])), None, "a change of a view that is not known");
        assert_eq!(ranges(wanted.observe(&frame(None, 1, vec![]))), some(&[]));
        assert_eq!(wanted.observe(&frame(None, 1, vec![])), None, "the same view again");
        let everywhere = "0.0.0.0/0";
        assert_eq!(ranges(wanted.observe(&change(vec![machine(0, "80", everywhere)]))), some(&["80/tcp"]));
        assert_eq!(wanted.observe(&change(vec![machine(0, "80", everywhere)])), None);
        assert!(wanted.observe(&change(vec![machine(0, "80", "10.0.0.0/8")])).is_some(), "another subnet");
        let changed = wanted.observe(&change(vec![machine(1, "53/udp", everywhere)]));
        assert_eq!(ranges(changed), some(&["80/tcp", "53/udp"]));
        let mut gone = change(vec![]);
        gone.deletes = vec![ViewKey::Machine(MachineId(0))];
        assert_eq!(ranges(wanted.observe(&gone)), some(&["53/udp"]));
        assert_eq!(ranges(wanted.observe(&frame(None, 3, vec![]))), some(&[]), "another view");
    }

    #[test]
    fn a_frame_of_several_lines_counts_once_it_is_whole() {
        let mut wanted = WantedPorts::default();
        let line = |from, number, puts| {
            let mut line = frame(from, 9, puts);
            line.line = Some(LineNumber { number, of: 2 });
            line
        };
        let first = || line(None, 1, vec![machine(0, "80", "0.0.0.0/0")]);
        assert_eq!(wanted.observe(&first()), None);
        // The frame was interrupted, and comes again.
        assert_eq!(wanted.observe(&first()), None);
        let last = line(None, 2, vec![machine(1, "81", "0.0.0.0/0")]);
        assert_eq!(ranges(wanted.observe(&last)), some(&["80/tcp", "81/tcp"]));
        assert_eq!(wanted.observe(&line(Some(9), 1, vec![machine(1, "82", "0.0.0.0/0")])), None);
        assert_eq!(ranges(wanted.observe(&line(Some(9), 2, vec![]))), some(&["80/tcp", "82/tcp"]));
    }
}
