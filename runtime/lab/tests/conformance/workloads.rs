//! Workloads: when a unit is told that the Pebble of a container listens, and in which order with its other hooks.

use periapt_host_api::{command::ResolveMode, status::AgentStatus};
use periapt_lab::Lab;

use crate::bench::{charm, fails, lab, runs};

pub(crate) const SERVED: &str = "
name: served
requires:
  db: {interface: sql}
config:
  options:
    colour: {type: string, default: red}
containers:
  web: {}
  side: {}
";

const START_UP: [&str; 4] = ["install", "leader-elected", "config-changed", "start"];

fn deployed() -> Lab {
    let mut lab = lab();
    lab.deploy("a", &charm(SERVED), 1).unwrap();
    lab
}

/// Returns the hooks of `a/0` after its start-up.
pub(crate) fn later(lab: &Lab) -> Vec<String> {
    let all = runs(lab, "a/0");
    assert_eq!(all[..4], START_UP);
    all[4..].to_vec()
}

#[test]
fn y01_pebble_ready_comes_after_start_and_once_for_each_start_of_a_container() {
    let mut lab = deployed();
    lab.run_until_idle().unwrap();
    assert!(later(&lab).is_empty(), "no container has started");
    lab.start_workload("a/0", "web", "1").unwrap();
    lab.start_workload("a/0", "side", "1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["side-pebble-ready", "web-pebble-ready"]);
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.start_workload("a/0", "web", "2").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab)[2..], ["config-changed", "web-pebble-ready"]);
}

#[test]
fn y02_starts_while_a_hook_runs_are_told_once_with_the_last_of_them() {
    let mut lab = deployed();
    lab.run_until_idle().unwrap();
    lab.hold("a/0").unwrap();
    for boot in ["1", "2", "3"] {
        lab.start_workload("a/0", "web", boot).unwrap();
    }
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["web-pebble-ready"]);
    let unit = lab.unit("a/0").unwrap();
    let told = unit.record.workloads.values().map(|told| told.boot_id.as_str());
    assert_eq!(told.collect::<Vec<_>>(), ["3"]);
}

#[test]
fn y03_pebble_ready_precedes_changes_of_settings_and_members() {
    let mut lab = deployed();
    lab.deploy("b", &charm("name: b\nprovides: {db: {interface: sql}}\n"), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab.hold("a/0").unwrap();
    lab.integrate("a:db", "b:db").unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.start_workload("a/0", "web", "1").unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        later(&lab),
        [
            "db-relation-created",
            "web-pebble-ready",
            "config-changed",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
        ]
    );
}

#[test]
fn y04_a_failed_pebble_ready_is_tried_again_and_a_dying_unit_is_told_nothing() {
    let mut lab = deployed();
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.script("a/0", "web-pebble-ready", fails()).unwrap();
    lab.start_workload("a/0", "web", "1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.unit("a/0").unwrap().agent_status.status, AgentStatus::Error);
    assert_eq!(lab.unit("a/0").unwrap().record.workloads.len(), 0);
    lab.script("a/0", "web-pebble-ready", Vec::new()).unwrap();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab).last().unwrap(), "web-pebble-ready");
    assert_eq!(lab.unit("a/0").unwrap().record.workloads.len(), 1);
    let before = later(&lab).len();
    lab.hold("a/0").unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.start_workload("a/0", "web", "2").unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab)[before..], ["stop", "remove"]);
}
