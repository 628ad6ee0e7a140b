//! `status --format summary`: counts, as Juju draws them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    net::Ipv4Addr,
};

use periapt_host_api::{
    network::Subnet,
    status::{FullStatus, UnitStatus},
};

/// The most ports on a line.
const PORTS_OF_A_LINE: usize = 3;

pub(super) fn render(status: &FullStatus) -> String {
    let units: Vec<&UnitStatus> = status
        .applications
        .values()
        .flat_map(|application| application.units.values())
        .flat_map(|unit| std::iter::once(unit).chain(unit.subordinates.values()))
        .collect();
    let machines: Vec<_> = status.machines.values().collect();
    let addresses = machines.iter().map(|machine| machine.dns_name.as_str());
    let addresses = addresses.chain(units.iter().map(|unit| unit.public_address.as_str()));
    let ports: BTreeSet<&str> = units.iter().flat_map(|unit| &unit.open_ports).map(String::as_str).collect();
    let mut lines = vec![Line::of("# Machines:", format!("({})", machines.len()), "")];
    lines.extend(counted(machines.iter().map(|machine| machine.juju_status.current.as_str())));
    lines.push(Line::default());
    lines.push(Line::of("# Units:", format!("({})", units.len()), ""));
    lines.extend(counted(units.iter().map(|unit| unit.workload_status.current.as_str())));
    lines.push(Line::default());
    lines.push(Line::of("# Applications:", format!("({})", status.applications.len()), ""));
    lines.extend(status.applications.iter().map(|(name, application)| {
        Line::of(name, format!("{}/1", u8::from(application.exposed)), "exposed")
    }));
    lines.push(Line::default());
    lines.push(Line::of("# Remote:", format!("({})", status.remote_applications.len()), ""));
    lines.extend(
        status.remote_applications.iter().map(|(name, remote)| Line::of(name, String::new(), &remote.url)),
    );
    networks(addresses, &ports) + &drawn(&lines)
}

/// A counted line. Its first two columns are right-aligned.
#[derive(Debug, Default)]
struct Line {
    what: String,
    count: String,
    rest: String,
}

impl Line {
    fn of(what: &str, count: String, rest: &str) -> Self {
        Self { what: what.to_owned(), count, rest: rest.to_owned() }
    }
}

/// Formats the model's addresses and ports.
fn networks<'a>(addresses: impl Iterator<Item = &'a str>, ports: &BTreeSet<&str>) -> String {
    let mut subnets: Vec<(Ipv4Addr, Subnet)> = Vec::new();
    for address in addresses.filter_map(|address| address.parse::<Ipv4Addr>().ok()) {
        let seen = subnets.iter().any(|(_, subnet)| subnet.contains(address.into()));
        subnets.extend(classful(address).filter(|_| !seen).map(|subnet| (address, subnet)));
    }
    let subnets: Vec<String> = subnets.iter().map(|(address, subnet)| within(*address, subnet)).collect();
    let ports: Vec<&str> = ports.iter().copied().collect();
    let ports: Vec<String> = ports.chunks(PORTS_OF_A_LINE).map(|ports| ports.join(", ")).collect();
    let ports = ports.join(&format!(",\n{}", " ".repeat(21)));
    format!("Running on subnets:  {}\n Utilizing ports:    {ports}\n\n", subnets.join(", "))
}

/// Returns the subnet of an address by its class. Juju draws that, because it does not know the
/// subnet either.
fn classful(address: Ipv4Addr) -> Option<Subnet> {
    let [first, ..] = address.octets();
    let bits = match first {
        0..=127 => 8,
        128..=191 => 16,
        _ => 24,
    };
    Subnet::around(address.into(), bits)
}

/// Formats an address with its subnet's prefix length: `10.0.0.7/8`.
fn within(address: Ipv4Addr, subnet: &Subnet) -> String {
    let subnet = subnet.to_string();
    format!("{address}/{}", subnet.split_once('/').map_or("", |(_, bits)| bits))
}

/// Counts the units of each status.
fn counted<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Line> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    counts.iter().map(|(word, count)| Line::of(&format!("{word}:"), count.to_string(), "")).collect()
}

fn drawn(lines: &[Line]) -> String {
    let width =
        |of: fn(&Line) -> &String| lines.iter().map(|line| of(line).chars().count()).max().unwrap_or(0);
    let (what, count) = (width(|line| &line.what), width(|line| &line.count));
    let mut text = String::new();
    for line in lines {
        let drawn = format!("{:>what$}  {:>count$}  {}", line.what, line.count, line.rest);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", drawn.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    #[test]
    fn everything_is_counted_by_its_status() {
        let text = anstream::adapter::strip_str(&render(&fixture::unsettled())).to_string();
        insta::assert_snapshot!(text);
    }
}
