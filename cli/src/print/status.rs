//! The tables of `status`, as Juju draws them.

#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;

use periapt_host_api::{
    UnitName,
    command::MemberRole,
    status::{
        ApplicationStatus, FullStatus, MachineStatus, ModelStatus, RelationStatus, StatusText, UnitStatus,
    },
};

use crate::{
    error::Result,
    output::{Table, Text, TextStyle, style_of_status},
    print::storage,
};

/// The longest workload version that the table shows whole.
const VERSION_WIDTH: usize = 15;

/// The tables that are shown on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// `--relations`
    Relations,
    /// `--storage`
    Storage,
}

/// Draws all tables with rows, with an empty line between them.
pub(crate) fn render(status: &FullStatus, sections: &[Section]) -> Text {
    let mut tables = vec![
        model(status),
        controllers(status),
        consumed(status),
        applications(status),
        units(status),
        workload_problems(status),
        machines(&status.machines),
        offers(status),
    ];
    for section in sections {
        match section {
            Section::Relations => tables.push(relations(&status.relations)),
            Section::Storage => tables.extend(status.storage.as_ref().map(storage::tabular)),
        }
    }
    let mut parts: Vec<Text> = tables.iter().filter(|table| !table.is_empty()).map(Table::render).collect();
    let problem = |text: &String| Text::painted(&format!("controller: {text}\n"), TextStyle::Bad);
    parts.extend(status.controller.problems.iter().map(problem));
    Text::joined(parts, "\n")
}

fn model(status: &FullStatus) -> Table {
    let model = &status.model;
    let time = status.controller.timestamp.strftime("%H:%M:%SZ").to_string();
    let notes = match model.model_status.current.as_str() {
        "available" | "alive" => String::new(),
        other if model.model_status.message.is_empty() => other.to_owned(),
        other => format!("{other}: {}", model.model_status.message),
    };
    let cells = [
        (&model.name).into(),
        (&model.controller).into(),
        cloud_and_region(model).into(),
        (&model.version).into(),
        time.into(),
    ];
    let heading = ["Model", "Controller", "Cloud/Region", "Version", "Timestamp"];
    if notes.is_empty() {
        let mut table = Table::new(heading);
        table.row(cells);
        return table;
    }
    let [name, controller, cloud, version, time_heading] = heading;
    let mut table = Table::new([name, controller, cloud, version, time_heading, "Notes"]);
    let [name, controller, cloud, version, time] = cells;
    table.row([name, controller, cloud, version, time, notes.into()]);
    table
}

/// Draws the controllers of a log, if there are several.
fn controllers(status: &FullStatus) -> Table {
    let mut table = Table::new(["Member", "Role", "Revision", "Behind", "Message"]).right(2).right(3);
    for (name, member) in &status.controller.members {
        let role = match member.role {
            MemberRole::Leader => "leader",
            MemberRole::Follower => "follower",
        };
        let message = match member.stale {
            true => ("not up to date: it shows nothing until it is", TextStyle::Bad),
            false => ("", TextStyle::Plain),
        };
        table.row([
            name.into(),
            role.into(),
            member.revision.0.to_string().into(),
            member.behind.to_string().into(),
            message.into(),
        ]);
    }
    table
}

/// Formats `CLOUD/REGION`, or the cloud alone.
fn cloud_and_region(model: &ModelStatus) -> String {
    match model.region.as_str() {
        "" => model.cloud.clone(),
        region => format!("{}/{region}", model.cloud),
    }
}

fn consumed(status: &FullStatus) -> Table {
    let mut table = Table::new(["SAAS", "Status", "Store", "URL"]);
    for (name, remote) in &status.remote_applications {
        let word = remote.application_status.current.as_str();
        table.row([
            name.into(),
            (word, style_of_status(word)).into(),
            (&status.model.controller).into(),
            (&remote.url).into(),
        ]);
    }
    table
}

fn offers(status: &FullStatus) -> Table {
    let heading = ["Offer", "Application", "Charm", "Rev", "Connected", "Endpoint", "Interface", "Role"];
    let mut table = Table::new(heading);
    for (name, offer) in &status.offers {
        let charm = offer.charm.strip_prefix("local:").unwrap_or(&offer.charm);
        let (charm, revision) = charm.rsplit_once('-').unwrap_or((charm, ""));
        let connected = format!("{}/{}", offer.active_connected_count, offer.total_connected_count);
        let first = [name.as_str(), &offer.application, charm, revision, &connected];
        for (index, (name, endpoint)) in offer.endpoints.iter().enumerate() {
            let [offer, application, charm, revision, connected] = if index == 0 { first } else { [""; 5] };
            table.row([
                offer.into(),
                application.into(),
                charm.into(),
                revision.into(),
                connected.into(),
                name.into(),
                endpoint.interface.as_str().into(),
                endpoint.role.to_string().into(),
            ]);
        }
    }
    table
}

fn applications(status: &FullStatus) -> Table {
    let heading = ["App", "Version", "Status", "Scale", "Charm", "Channel", "Rev", "Exposed", "Message"];
    let mut table = Table::new(heading).right(3).right(6);
    for (name, application) in &status.applications {
        let word = application.application_status.current.as_str();
        table.row([
            name.into(),
            shortened(&application.version).into(),
            (word, style_of_status(word)).into(),
            scale(status, name, application).into(),
            (&application.charm_name).into(),
            "".into(),
            application.charm_rev.to_string().into(),
            if application.exposed { "yes" } else { "no" }.into(),
            message(&application.life, &application.waits_for, &application.application_status.message)
                .into(),
        ]);
    }
    table
}

/// Formats the number of units: `2/3` while one of three has no working agent.
fn scale(status: &FullStatus, name: &str, application: &ApplicationStatus) -> String {
    // A subordinate's units stand under their principals.
    let below = application
        .subordinate_to
        .iter()
        .filter_map(|principal| status.applications.get(principal))
        .flat_map(|principal| principal.units.values())
        .flat_map(|unit| &unit.subordinates)
        .filter(|(unit, _)| unit.split_once('/').is_some_and(|(application, _)| application == name))
        .map(|(_, unit)| unit);
    let units: Vec<_> = application.units.values().chain(below).collect();
    let works = |unit: &&&UnitStatus| matches!(unit.juju_status.current.as_str(), "executing" | "idle");
    match (units.iter().filter(works).count(), units.len()) {
        (working, all) if working == all => all.to_string(),
        (working, all) => format!("{working}/{all}"),
    }
}

fn units(status: &FullStatus) -> Table {
    let heading = ["Unit", "Workload", "Agent", "Machine", "Public address", "Ports", "Message"];
    let mut table = Table::new(heading);
    for application in status.applications.values() {
        for (name, unit) in in_order(&application.units) {
            unit_row(&mut table, name, unit, "");
            for (name, unit) in in_order(&unit.subordinates) {
                unit_row(&mut table, name, unit, "  ");
            }
        }
    }
    table
}

fn unit_row(table: &mut Table, name: &str, unit: &UnitStatus, indent: &str) {
    let (workload, agent) = (unit.workload_status.current.as_str(), unit.juju_status.current.as_str());
    let text = match (agent, unit.workload_status.message.as_str()) {
        // The agent's message fills in before the charm's first status, and tells why the charm cannot run.
        ("allocating" | "failed", "") => unit.juju_status.message.clone(),
        ("failed", text) => format!("({}) {text}", unit.juju_status.message),
        (_, text) => match doing(&unit.juju_status) {
            Some(hook) => format!("({hook}) {text}"),
            None => text.to_owned(),
        },
    };
    table.row([
        format!("{indent}{name}{}", if unit.leader { "*" } else { "" }).into(),
        (workload, style_of_status(workload)).into(),
        (agent, style_of_status(agent)).into(),
        (&unit.machine).into(),
        (&unit.public_address).into(),
        ports(&unit.open_ports).into(),
        message(&unit.life, &unit.waits_for, &text).into(),
    ]);
}

/// Draws the containers, services and checks that are down, and the ports that are taken.
fn workload_problems(status: &FullStatus) -> Table {
    let mut table = Table::new(["Unit", "Workload problem"]);
    for application in status.applications.values() {
        for (name, unit) in in_order(&application.units) {
            let below = in_order(&unit.subordinates);
            for (name, unit) in [(name, unit)].into_iter().chain(below) {
                for problem in &unit.workload_problems {
                    table.row([name.into(), (problem.as_str(), TextStyle::Bad).into()]);
                }
            }
        }
    }
    table
}

/// Returns the hook that an agent runs, from its message `running NAME hook`.
fn doing(agent: &StatusText) -> Option<&str> {
    let text = agent.message.strip_prefix("running ").filter(|_| agent.current == "executing")?;
    text.split_once(" hook").map(|(hook, _)| hook)
}

/// Formats a message. A dying thing's has its life, and the reasons of its wait.
fn message(life: &str, waits_for: &[String], text: &str) -> String {
    let mut parts = Vec::new();
    match (life, waits_for) {
        ("" | "alive", _) => {}
        (life, []) => parts.push(life.to_owned()),
        (life, waits_for) => parts.push(format!("{life}, waits for {}", waits_for.join(", "))),
    }
    if !text.is_empty() {
        parts.push(text.to_owned());
    }
    parts.join(": ")
}

/// Formats ports by protocol: `80,443/tcp 53/udp`.
fn ports(open: &[String]) -> String {
    let mut by_protocol: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut others = Vec::new();
    for range in open {
        match range.split_once('/') {
            Some((ports, protocol)) => by_protocol.entry(protocol).or_default().push(ports),
            None => others.push(range.as_str()),
        }
    }
    let mut parts: Vec<String> =
        by_protocol.iter().map(|(protocol, ports)| format!("{}/{protocol}", ports.join(","))).collect();
    parts.extend(others.into_iter().map(str::to_owned));
    parts.join(" ")
}

/// Draws the table of machines.
pub(crate) fn machines(machines: &BTreeMap<String, MachineStatus>) -> Table {
    let mut table = Table::new(["Machine", "State", "Address", "Inst id", "Base", "AZ", "Message"]);
    for (name, machine) in in_order(machines) {
        let word = machine.juju_status.current.as_str();
        table.row([
            name.into(),
            (word, style_of_status(word)).into(),
            (&machine.dns_name).into(),
            (&machine.instance_id).into(),
            format!("{}@{}", machine.base.name, machine.base.channel).into(),
            availability_zone(machine).into(),
            message(&machine.life, &[], machine_message(machine)).into(),
        ]);
    }
    table
}

/// Returns the message of a machine: its own, or that of an agent at work, which tells of a program that failed and of
/// rules that the host's firewall lacks.
fn machine_message(machine: &MachineStatus) -> &str {
    match (machine.machine_status.message.as_str(), machine.juju_status.current.as_str()) {
        ("", "started") => &machine.juju_status.message,
        (own, _) => own,
    }
}

/// Returns the zone among the words that describe a machine.
fn availability_zone(machine: &MachineStatus) -> &str {
    let words = machine.hardware.split_ascii_whitespace();
    words.filter_map(|word| word.strip_prefix("availability-zone=")).next().unwrap_or_default()
}

fn relations(relations: &[RelationStatus]) -> Table {
    let heading = ["Integration provider", "Requirer", "Interface", "Type", "Message"];
    let mut table = Table::new(heading);
    let mut relations: Vec<_> = relations.iter().collect();
    relations.sort_by(|one, other| (&one.provider, &one.requirer).cmp(&(&other.provider, &other.requirer)));
    for relation in relations {
        let text = match relation.status.as_str() {
            "joined" => "",
            other => other,
        };
        table.row([
            (&relation.provider).into(),
            (&relation.requirer).into(),
            (&relation.interface).into(),
            (&relation.kind).into(),
            message("", &[], &with_waits(&because(text, &relation.message), &relation.waits_for)).into(),
        ]);
    }
    table
}

fn because(text: &str, reason: &str) -> String {
    match reason {
        "" => text.to_owned(),
        reason => format!("{text} - {reason}"),
    }
}

fn with_waits(text: &str, waits_for: &[String]) -> String {
    match waits_for {
        [] => text.to_owned(),
        waits_for => format!("{text}, waits for {}", waits_for.join(", ")),
    }
}

fn shortened(version: &str) -> String {
    if version.chars().count() <= VERSION_WIDTH {
        return version.to_owned();
    }
    version.chars().take(VERSION_WIDTH - 3).chain("...".chars()).collect()
}

/// Sorts names that end in a number by that: `mysql/10` after `mysql/9`.
pub(crate) fn in_order<T>(things: &BTreeMap<String, T>) -> Vec<(&str, &T)> {
    let mut sorted: Vec<_> = things.iter().map(|(name, thing)| (name.as_str(), thing)).collect();
    sorted.sort_by_key(|(name, _)| match name.rsplit_once('/') {
        Some((application, number)) => (application, number.parse().unwrap_or(u64::MAX)),
        None => ("", name.parse().unwrap_or(u64::MAX)),
    });
    sorted
}

/// Returns the names of all units in a status, subordinates too.
pub(crate) fn all_units(status: &FullStatus) -> Result<Vec<UnitName>> {
    status.units().map(|unit| Ok(unit.name.parse()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    fn drawn(status: &FullStatus, sections: &[Section]) -> String {
        anstream::adapter::strip_str(&render(status, sections)).to_string()
    }

    #[test]
    fn a_settled_model_is_drawn_as_juju_draws_it() {
        insta::assert_snapshot!(drawn(&fixture::settled(), &[Section::Relations]));
    }

    #[test]
    fn an_unsettled_model_says_what_is_done_and_what_is_waited_for() {
        insta::assert_snapshot!(drawn(&fixture::unsettled(), &[Section::Relations]));
    }

    #[test]
    fn a_machine_whose_agent_did_not_take_a_program_says_so() {
        let mut status = fixture::settled();
        let machine = status.machines.get_mut("0").unwrap();
        machine.juju_status.message = "program 0123456789ab failed: it ended".into();
        let text = drawn(&status, &[]);
        let line = text.lines().find(|line| line.contains("program 0123456789ab failed: it ended"));
        assert!(line.is_some_and(|line| line.starts_with("0 ")), "{text}");
        let machine = status.machines.get_mut("0").unwrap();
        machine.machine_status.message = "the disk is full".into();
        let text = drawn(&status, &[]);
        assert!(text.contains("the disk is full") && !text.contains("0123456789ab"), "{text}");
    }

    #[test]
    fn several_controllers_have_a_table_of_their_own_and_one_has_none() {
        let mut status = fixture::settled();
        assert!(!drawn(&status, &[]).contains("Member"));
        let member = |role, revision, behind, stale| {
            let revision = periapt_host_api::Revision(revision);
            periapt_host_api::status::MemberStatus { role, revision, behind, stale }
        };
        status.controller.members = BTreeMap::from([
            ("node-1".to_owned(), member(MemberRole::Leader, 81_223, 0, false)),
            ("node-2".to_owned(), member(MemberRole::Follower, 9, 81_214, true)),
        ]);
        let text = drawn(&status, &[]);
        let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Member")).take(3).collect();
        assert_eq!(
            lines,
            [
                "Member  Role      Revision  Behind  Message",
                "node-1  leader       81223       0",
                "node-2  follower         9   81214  not up to date: it shows nothing until it is",
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_workloads_has_a_table_of_its_own() {
        let mut status = fixture::settled();
        let units = status.applications.values_mut().flat_map(|application| application.units.values_mut());
        for unit in units.take(1) {
            unit.workload_problems = vec!["container web does not run: no image is attached".into()];
        }
        let text = drawn(&status, &[]);
        let (_, after) = text.split_once("Workload problem\n").unwrap();
        assert!(after.lines().next().unwrap().ends_with("no image is attached"), "{text}");
    }

    #[test]
    fn colours_are_of_words_alone() {
        let text = render(&fixture::settled(), &[]);
        assert!(text.contains("\u{1b}[32mactive\u{1b}[0m"), "{text:?}");
    }

    #[test]
    fn ports_are_gathered_by_protocol() {
        let open = ["80/tcp", "443/tcp", "53/udp", "icmp"].map(str::to_owned);
        assert_eq!(ports(&open), "80,443/tcp 53/udp icmp");
    }
}
