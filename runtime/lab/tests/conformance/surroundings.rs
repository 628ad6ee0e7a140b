//! J and O: ports, configuration and statuses, as hooks of a running unit read them
//! (`docs/hook-model.md` 5).

use periapt_host_api::{
    command::{Command, Deploy, Placement},
    status::WorkloadStatus,
};
use periapt_lab::{HookRunState, Lab};

use crate::bench::{charm, lab, ports_of, printed, refused, started, tries, workload};

/// A charm with two endpoints, and options with and without a value.
const RICH: &str = "
name: rich
requires:
  db: {interface: sql}
provides:
  site: {interface: http}
config:
  options:
    colour: {type: string, default: red}
    token: {type: string}
";

/// Returns a model of the charm, whose units run config-changed at each change of configuration.
fn rich(units: u32) -> Lab {
    started(RICH, units)
}

/// Runs these tools in a config-changed of a unit.
fn ask(lab: &mut Lab, unit: &str, lines: &[&str]) {
    lab.script(unit, "config-changed", tries(lines)).unwrap();
    let colour = format!("colour-{}", lab.trace().len());
    lab.configure(unit.split('/').next().unwrap(), &[("colour", &colour)]).unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript(unit, "config-changed").unwrap();
    let ran = lab.trace().iter().rev().find(|traced| !traced.tools.is_empty()).unwrap();
    assert_eq!((ran.state, ran.unit.to_string().as_str()), (HookRunState::Committed, unit));
}

/// Adds one more unit on the machine of `a/0`.
fn neighbour(lab: &mut Lab) {
    let machine = lab.unit("a/0").unwrap().machine.unwrap();
    lab.command(&Command::Deploy(Deploy {
        application: Some("c".parse().unwrap()),
        placement: vec![Placement::Machine(machine)],
        ..Deploy::of(charm(RICH).digest(), 1)
    }))
    .unwrap();
    lab.run_until_idle().unwrap();
}

#[test]
fn j01_a_port_is_listed_in_the_hook_that_opens_it() {
    let mut lab = rich(1);
    ask(&mut lab, "a/0", &["open-port 80", "opened-ports"]);
    printed(&lab, "opened-ports", "80/tcp\n");
    assert_eq!(ports_of(&lab, "a/0"), ["80/tcp []"]);
}

#[test]
fn j03_the_ports_of_another_unit_of_the_machine_are_taken() {
    let mut lab = rich(1);
    neighbour(&mut lab);
    ask(&mut lab, "c/0", &["open-port 80"]);
    ask(&mut lab, "a/0", &["open-port 80", "open-port 81"]);
    refused(&lab, "open-port 80", 1, "port range conflicts with 80/tcp (unit \"c/0\")");
    assert_eq!(
        (ports_of(&lab, "c/0"), ports_of(&lab, "a/0")),
        (vec!["80/tcp []".into()], vec!["81/tcp []".into()])
    );
    // On a machine of its own the port is free.
    lab.add_units("a", 1).unwrap();
    lab.run_until_idle().unwrap();
    ask(&mut lab, "a/1", &["open-port 80"]);
    assert_eq!(ports_of(&lab, "a/1"), ["80/tcp []"]);
}

#[test]
fn j04_one_range_is_opened_for_one_endpoint_after_the_other() {
    let mut lab = rich(1);
    ask(&mut lab, "a/0", &["open-port 80 --endpoints db"]);
    assert_eq!(ports_of(&lab, "a/0"), ["80/tcp [\"db\"]"]);
    ask(&mut lab, "a/0", &["open-port 80 --endpoints site"]);
    printed(&lab, "open-port 80 --endpoints site", "");
    assert_eq!(ports_of(&lab, "a/0"), ["80/tcp [\"db\",\"site\"]"]);
}

#[test]
fn o01_an_option_without_value_is_left_out_and_null_with_the_all_flag() {
    let mut lab = rich(1);
    let lines = ["config-get --format=json", "config-get --all --format=json"];
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.script("a/0", "update-status", tries(&lines)).unwrap();
    lab.advance(std::time::Duration::from_secs(370)).unwrap();
    printed(&lab, lines[0], "{\"colour\":\"blue\"}\n");
    printed(&lab, lines[1], "{\"colour\":\"blue\",\"token\":null}\n");
}

#[test]
fn o05_a_status_is_one_of_four_words() {
    let mut lab = rich(1);
    ask(&mut lab, "a/0", &["status-set waiting here", "status-set foo there"]);
    let message = "invalid status \"foo\", expected one of [maintenance blocked waiting active]";
    refused(&lab, "status-set foo there", 2, message);
    assert_eq!(workload(&lab, "a/0"), (WorkloadStatus::Waiting, "here".to_owned()));
}

#[test]
fn o06_only_the_leader_speaks_for_the_application() {
    let mut lab = rich(2);
    let leader =
        lab.state().unwrap().application(&"a".parse().unwrap()).unwrap().leader.clone().unwrap().unit;
    let other = if leader.number() == 0 { "a/1" } else { "a/0" };
    let line = "status-set --application blocked mine";
    let shown = |lab: &Lab| lab.status().unwrap().applications["a"].application_status.message.clone();
    ask(&mut lab, other, &[line]);
    refused(&lab, line, 1, "this unit is not the leader");
    assert_eq!(shown(&lab), "");
    ask(&mut lab, &leader.to_string(), &[line]);
    assert_eq!(shown(&lab), "mine");
}

#[test]
fn q01_the_worst_unit_speaks_for_an_application_that_set_nothing() {
    let mut lab = lab();
    lab.deploy("a", &charm(RICH), 3).unwrap();
    let statuses = ["status-set active up", "status-set blocked no-database", "status-set waiting soon"];
    for (number, line) in statuses.iter().enumerate() {
        lab.script(&format!("a/{number}"), "install", tries(&[line])).unwrap();
    }
    lab.run_until_idle().unwrap();
    let status = lab.status().unwrap();
    let application = &status.applications["a"].application_status;
    assert_eq!((application.current.as_str(), application.message.as_str()), ("blocked", "no-database"));
    let unit = |name: &str| status.applications["a"].units[name].workload_status.current.clone();
    assert_eq!(["a/0", "a/1", "a/2"].map(unit), ["active", "blocked", "waiting"]);
}

#[test]
fn q03_a_hook_error_is_the_workloads_and_the_agent_is_idle() {
    let mut lab = rich(1);
    ask(&mut lab, "a/0", &["status-set active up"]);
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "config-changed", crate::bench::fails()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    let status = lab.status().unwrap();
    let unit = &status.applications["a"].units["a/0"];
    assert_eq!((unit.workload_status.current.as_str(), unit.juju_status.current.as_str()), ("error", "idle"));
    assert_eq!(unit.workload_status.message, "hook failed: \"config-changed\"");
    lab.unscript_all();
    lab.resolve("a/0", periapt_host_api::command::ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        workload(&lab, "a/0"),
        (WorkloadStatus::Active, "up".to_owned()),
        "what the charm said is kept"
    );
}
