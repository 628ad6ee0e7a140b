//! `status --format summary`: counts.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::status::{FullStatus, UnitStatus};

use crate::output::Table;

pub(super) fn render(status: &FullStatus) -> String {
    let units: Vec<&UnitStatus> = status
        .applications
        .values()
        .flat_map(|application| application.units.values())
        .flat_map(|unit| std::iter::once(unit).chain(unit.subordinates.values()))
        .collect();
    let ports: BTreeSet<&str> = units.iter().flat_map(|unit| &unit.open_ports).map(String::as_str).collect();
    let utilised: BTreeSet<&str> = status.machines.values().map(|m| m.dns_name.as_str()).collect();
    let list = |words: BTreeSet<&str>| words.into_iter().collect::<Vec<_>>().join(", ");
    let mut text = format!("Running on addresses: {}\nOpen ports: {}\n\n", list(utilised), list(ports));
    let machines = status.machines.values().map(|machine| machine.juju_status.current.as_str());
    let workloads = units.iter().map(|unit| unit.workload_status.current.as_str());
    let applications = status.applications.values().map(|a| a.application_status.current.as_str());
    let parts =
        [counted("Machines", machines), counted("Units", workloads), counted("Applications", applications)];
    text.push_str(&parts.map(|table| table.render()).join("\n"));
    text
}

/// How many there are of each status, and of all.
fn counted<'a>(what: &str, words: impl Iterator<Item = &'a str>) -> Table {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let mut table = Table::new([what, "Count"]).right(1);
    for (word, count) in &counts {
        table.row([(*word).into(), (*count).into()]);
    }
    table.row(["total".into(), counts.values().sum::<u32>().into()]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::status::fixture;

    #[test]
    fn everything_is_counted_by_its_status() {
        let text = anstream::adapter::strip_str(&render(&fixture::unsettled())).to_string();
        insta::assert_snapshot!(text);
    }
}
