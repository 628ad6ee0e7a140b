//! Spaces and subnets with Juju's field names.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{SpaceName, api::SpaceList, network::Subnet, status::FullStatus};
use serde::Serialize;

use crate::output::{Table, Text};

/// `spaces`
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    spaces: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    id: String,
    name: String,
    subnets: BTreeMap<String, OfSpace>,
}

#[derive(Debug, Serialize)]
struct OfSpace {
    r#type: &'static str,
    status: &'static str,
    zones: [String; 0],
}

/// `spaces --short`
#[derive(Debug, Serialize)]
pub(super) struct Names {
    spaces: Vec<String>,
}

/// `subnets`
#[derive(Debug, Serialize)]
pub(super) struct Subnets {
    subnets: BTreeMap<String, Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    r#type: &'static str,
    status: &'static str,
    space: String,
    zones: [String; 0],
}

/// `show-space`
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Space {
    space: Details,
    applications: Vec<String>,
    machine_count: usize,
}

#[derive(Debug, Serialize)]
struct Details {
    id: String,
    name: String,
    subnets: Vec<Detail>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Detail {
    cidr: String,
    vlan_tag: u32,
    zones: [String; 0],
}

/// The state of a subnet that a host has.
const IN_USE: &str = "in-use";

impl Listing {
    pub(super) fn of(list: &SpaceList) -> Self {
        let subnet = |subnet: &Subnet| {
            let shown = OfSpace { r#type: kind(subnet), status: IN_USE, zones: [] };
            (subnet.to_string(), shown)
        };
        let space = |(name, subnets): (&SpaceName, &BTreeSet<Subnet>)| Listed {
            id: id(name),
            name: name.to_string(),
            subnets: subnets.iter().map(subnet).collect(),
        };
        Self { spaces: list.spaces.iter().map(space).collect() }
    }

    /// Draws the table as Juju does: a space's name stands beside its first subnet.
    pub(super) fn table(&self) -> Text {
        let mut table = Table::new(["Name", "Space ID", "Subnets"]);
        for Listed { id, name, subnets } in &self.spaces {
            let mut first = (name.clone(), id.clone());
            if subnets.is_empty() {
                table.row([name.into(), id.into(), "".into()]);
            }
            for subnet in subnets.keys() {
                let (name, id) = std::mem::take(&mut first);
                table.row([name.into(), id.into(), subnet.into()]);
            }
        }
        table.render()
    }
}

impl Names {
    pub(super) fn of(list: &SpaceList) -> Self {
        Self { spaces: list.spaces.keys().map(ToString::to_string).collect() }
    }

    pub(super) fn table(&self) -> Text {
        let mut table = Table::new(["Space"]);
        for name in &self.spaces {
            table.row([name.into()]);
        }
        table.render()
    }
}

impl Subnets {
    pub(super) fn of(list: &SpaceList, only: Option<&SpaceName>) -> Self {
        let spaces = list.spaces.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
        let rows = spaces.flat_map(|(space, subnets)| {
            subnets.iter().map(move |subnet| {
                let row = Row { r#type: kind(subnet), status: IN_USE, space: space.to_string(), zones: [] };
                (subnet.to_string(), row)
            })
        });
        Self { subnets: rows.collect() }
    }
}

impl Space {
    pub(super) fn of(name: &SpaceName, subnets: &BTreeSet<Subnet>, status: &FullStatus) -> Self {
        let detail = |subnet: &Subnet| Detail { cidr: subnet.to_string(), vlan_tag: 0, zones: [] };
        let bound = status.applications.iter().filter(|(_, application)| {
            application.endpoint_bindings.values().any(|space| *space == name.as_str())
        });
        let within = |address: &String| {
            address.parse().is_ok_and(|address| subnets.iter().any(|subnet| subnet.contains(address)))
        };
        let machines = status.machines.values().filter(|machine| machine.ip_addresses.iter().any(within));
        Self {
            space: Details {
                id: id(name),
                name: name.to_string(),
                subnets: subnets.iter().map(detail).collect(),
            },
            applications: bound.map(|(name, _)| name.clone()).collect(),
            machine_count: machines.count(),
        }
    }
}

/// Returns the id of a space for Juju's clients. Juju numbers spaces, with `alpha` as 0. Periapt has names alone, so
/// the name is the id of all others.
fn id(name: &SpaceName) -> String {
    match name.as_str() {
        "alpha" => "0".to_owned(),
        name => name.to_owned(),
    }
}

fn kind(subnet: &Subnet) -> &'static str {
    match subnet.to_string().contains(':') {
        true => "ipv6",
        false => "ipv4",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list() -> SpaceList {
        let subnets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let spaces = [
            ("alpha", subnets(&["10.0.0.0/24", "fd00::/64"])),
            ("dmz", subnets(&[])),
            ("lan", subnets(&["10.0.1.0/24"])),
        ];
        SpaceList { spaces: spaces.map(|(name, subnets)| (SpaceName::new(name).unwrap(), subnets)).into() }
    }

    #[test]
    fn spaces_and_subnets_have_jujus_fields() {
        let v4 = json!({"type": "ipv4", "status": "in-use", "zones": []});
        let v6 = json!({"type": "ipv6", "status": "in-use", "zones": []});
        assert_eq!(
            serde_json::to_value(Listing::of(&list())).unwrap(),
            json!({"spaces": [
                {"id": "0", "name": "alpha", "subnets": {"10.0.0.0/24": v4, "fd00::/64": v6}},
                {"id": "dmz", "name": "dmz", "subnets": {}},
                {"id": "lan", "name": "lan", "subnets": {"10.0.1.0/24": v4}},
            ]})
        );
        assert_eq!(
            serde_json::to_value(Names::of(&list())).unwrap(),
            json!({"spaces": ["alpha", "dmz", "lan"]})
        );
        let only = Subnets::of(&list(), Some(&SpaceName::new("lan").unwrap()));
        assert_eq!(
            serde_json::to_value(only).unwrap(),
            json!({"subnets": {"10.0.1.0/24": {"type": "ipv4", "status": "in-use", "space": "lan", "zones": []}}})
        );
    }

    #[test]
    fn the_table_of_spaces_is_jujus() {
        let drawn = anstream::adapter::strip_str(&Listing::of(&list()).table()).to_string();
        assert_eq!(
            drawn,
            "Name   Space ID  Subnets\nalpha  0         10.0.0.0/24\n                 fd00::/64\n\
             dmz    dmz\nlan    lan       10.0.1.0/24\n"
        );
    }
}
