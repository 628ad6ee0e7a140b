//! D: configuration, the timer of update-status, reboots (`docs/hook-model.md` U-3, U-20, U-43).

use std::time::Duration;

use periapt_host_api::{command::Command, network::Bindings, status::AgentStatus};
use periapt_lab::Action;
use periapt_model::{RecordBody, StatusRecord};

use crate::bench::{LOCAL, START_UP, charm, does, runs, started};

/// Returns the hooks that a unit ran after its first ones.
fn later(lab: &periapt_lab::Lab) -> Vec<String> {
    runs(lab, "a/0").split_off(START_UP.len())
}

#[test]
fn d01_a_changed_setting_is_one_config_changed() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "config-changed", does("config-get colour")).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["config-changed"]);
    assert_eq!(lab.trace().last().unwrap().output_of("config-get").unwrap().stdout.trim(), "blue");
}

#[test]
fn d02_a_setting_that_is_set_to_what_it_is_is_no_hook() {
    let mut lab = started(LOCAL, 1);
    // The value equals the default, so nothing changes.
    lab.configure("a", &[("colour", "red")]).unwrap();
    lab.run_until_idle().unwrap();
    assert!(later(&lab).is_empty());
}

#[test]
fn d03_changed_addresses_are_a_config_changed() {
    let mut lab = started(LOCAL, 1);
    lab.kill_agent("host").unwrap();
    lab.move_addresses("host", &["10.9.9.9"]).unwrap();
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["config-changed"]);
}

#[test]
fn d03_a_binding_to_another_space_is_a_config_changed() {
    let mut lab = started(LOCAL, 1);
    let name: periapt_host_api::SpaceName = "internal".parse().unwrap();
    lab.command(&Command::AddSpace { name: name.clone(), subnets: vec!["10.0.0.0/24".parse().unwrap()] })
        .unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["config-changed"], "the host's address left alpha");
    lab.script("a/0", "config-changed", does("network-get db --ingress-address")).unwrap();
    let bindings = Bindings { default: Some(name), ..Bindings::default() };
    lab.command(&Command::Bind { application: "a".parse().unwrap(), bindings }).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab).len(), 2);
    assert_eq!(lab.trace().last().unwrap().output_of("network-get").unwrap().stdout, "10.0.0.1\n");
}

#[test]
fn a_restart_alone_runs_no_hook() {
    let mut lab = started(LOCAL, 1);
    for _ in 0..2 {
        lab.kill_agent("host").unwrap();
        lab.start_agent("host").unwrap();
        lab.run_until_idle().unwrap();
    }
    assert!(later(&lab).is_empty());
}

#[test]
fn d05_changes_while_another_hook_runs_are_one_hook_that_sees_the_last() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "config-changed", does("config-get colour")).unwrap();
    lab.configure("a", &[("colour", "first")]).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    for colour in ["second", "third", "fourth"] {
        lab.configure("a", &[("colour", colour)]).unwrap();
    }
    lab.run_until_idle().unwrap();
    let seen: Vec<String> = lab.trace()[START_UP.len()..]
        .iter()
        .map(|traced| traced.output_of("config-get").unwrap().stdout.trim().to_owned())
        .collect();
    assert_eq!(
        seen,
        ["first", "fourth"],
        "a hook sees one snapshot, and what came later makes another (U-3)"
    );
}

#[test]
fn d06_the_interval_gives_update_status_which_never_shows_as_executing() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "update-status", vec![Action::Sleep(Duration::from_secs(2))]).unwrap();
    lab.advance(Duration::from_secs(370)).unwrap();
    assert_eq!(later(&lab), ["update-status"], "within 5 min and a fifth");
    let executing = lab.records_of("a/0").any(|record| {
        matches!(record, RecordBody::Status(StatusRecord::Agent(info))
            if info.status == AgentStatus::Executing && info.message.contains("update-status"))
    });
    assert!(!executing);
}

#[test]
fn d06_an_application_has_an_interval_of_its_own_or_none() {
    let mut lab = started(LOCAL, 1);
    lab.configure("a", &[("update-status-hook-interval", "30m")]).unwrap();
    lab.advance(Duration::from_secs(370)).unwrap();
    assert_eq!(later(&lab).len(), 1, "the timer that stood fires");
    lab.advance(Duration::from_secs(17 * 60)).unwrap();
    assert_eq!(later(&lab).len(), 1, "half an hour less a fifth is not over");
    lab.advance(Duration::from_secs(20 * 60)).unwrap();
    assert_eq!(later(&lab), ["update-status"; 2]);
    lab.configure("a", &[("update-status-hook-interval", "0")]).unwrap();
    lab.advance(Duration::from_secs(24 * 3_600)).unwrap();
    assert_eq!(later(&lab).len(), 2, "off");
    let (application, reset) = ("a".parse().unwrap(), vec!["update-status-hook-interval".to_owned()]);
    lab.command(&Command::SetConfig { application, set: Default::default(), reset }).unwrap();
    lab.advance(Duration::from_secs(370)).unwrap();
    assert_eq!(later(&lab).len(), 3, "the model's again");
    let error = lab.configure("a", &[("update-status-hook-interval", "often")]).unwrap_err();
    assert!(error.to_string().contains("expected 0 (off) or a duration"), "{error}");
}

#[test]
fn an_interval_of_seconds_is_taken_and_kept() {
    let mut lab = started(LOCAL, 1);
    lab.configure_model(&[("update-status-hook-interval", "10s")]).unwrap();
    lab.advance(Duration::from_secs(60)).unwrap();
    let ran = later(&lab);
    assert!((4..=7).contains(&ran.len()), "10 s and a fifth: {ran:?}");
    lab.configure("a", &[("update-status-hook-interval", "500ms")]).unwrap();
    lab.advance(Duration::from_secs(60)).unwrap();
    let more = later(&lab).len() - ran.len();
    assert!((45..=76).contains(&more), "a part of a second is a whole one: {more}");
}

#[test]
fn d06_an_update_status_without_effects_writes_nothing() {
    let mut lab = started(LOCAL, 1);
    let revision = lab.root().revision();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    let ran = later(&lab);
    assert!((9..=15).contains(&ran.len()), "{ran:?}");
    assert_eq!(lab.root().revision(), revision);
}

#[test]
fn d07_ticks_while_other_work_is_due_are_no_update_status_of_their_own() {
    let mut lab = started(LOCAL, 1);
    lab.hold("a/0").unwrap();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["config-changed"], "any hook counts as the tick (U-20)");
}

#[test]
fn d07_a_tick_while_a_hook_runs_is_one_update_status_afterwards() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "config-changed", vec![Action::Sleep(Duration::from_secs(3_600))]).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["config-changed", "update-status"]);
}

#[test]
fn d08_a_reboot_of_the_host_is_one_start() {
    let mut lab = started(LOCAL, 1);
    lab.reboot_host("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["start"]);
    lab.kill_agent("host").unwrap();
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["start"], "once a boot");
}

#[test]
fn a_restart_of_the_controller_runs_no_hook() {
    let mut lab = started(LOCAL, 2);
    let before = lab.trace().len();
    lab.restart_controller().unwrap();
    lab.run_until_idle().unwrap();
    lab.advance(Duration::from_secs(100)).unwrap();
    assert_eq!(lab.trace().len(), before);
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.trace().len(), before + 2, "and the model goes on");
}

#[test]
fn e01_a_new_charm_is_upgrade_charm_then_config_changed() {
    let mut lab = started(LOCAL, 1);
    lab.refresh("a", &charm(LOCAL).revised("2")).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["upgrade-charm", "config-changed"]);
    let status = lab.status().unwrap();
    let (application, second) = (&status.applications["a"], charm(LOCAL).revised("2"));
    assert_eq!(lab.unit("a/0").unwrap().record.charm.unwrap().digest, second.digest());
    assert_eq!((application.charm_rev, application.units["a/0"].upgrading_from.as_str()), (1, ""));
}

#[test]
fn e02_a_new_resource_of_the_same_charm_is_upgrade_charm() {
    let local = format!("{LOCAL}resources: {{data: {{type: file, filename: rows.csv}}}}\n");
    let mut lab = started(&local, 1);
    let before = lab.unit("a/0").unwrap().record.charm.unwrap();
    assert_eq!(lab.attach_resource("a", "data", b"one").unwrap(), 1);
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["upgrade-charm", "config-changed"]);
    let after = lab.unit("a/0").unwrap().record.charm.unwrap();
    assert_eq!((after.digest, after.modified_version), (before.digest, before.modified_version + 1));

    // Equal content is no change; other content is.
    assert_eq!(lab.attach_resource("a", "data", b"one").unwrap(), 1);
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab).len(), 2);
    assert_eq!(lab.attach_resource("a", "data", b"two").unwrap(), 2);
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab)[2..], ["upgrade-charm", "config-changed"]);
}

#[test]
fn a_resource_is_read_in_the_hook_that_its_attachment_made_due() {
    let local = format!("{LOCAL}resources: {{data: {{type: file, filename: rows.csv}}}}\n");
    let mut lab = started(&local, 1);
    lab.script("a/0", "upgrade-charm", does("resource-get data")).unwrap();
    lab.attach_resource("a", "data", b"one").unwrap();
    lab.run_until_idle().unwrap();
    let upgraded = lab.trace().iter().find(|hook| hook.event.hook_name() == "upgrade-charm").unwrap();
    let output = upgraded.output_of("resource-get").unwrap();
    assert_eq!((output.exit_code, output.stdout.as_str()), (0, "/resources/data/rows.csv"));
}

#[test]
fn e05_upgrade_charm_that_is_passed_over_is_followed_by_config_changed() {
    let mut lab = started(LOCAL, 1);
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "upgrade-charm", crate::bench::fails()).unwrap();
    lab.refresh("a", &charm(LOCAL).revised("2")).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["upgrade-charm"]);
    lab.resolve("a/0", periapt_host_api::command::ResolveMode::NoRetry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["upgrade-charm", "config-changed"]);
}

#[test]
fn e03_a_new_charm_waits_for_the_error_to_clear_unless_it_is_forced() {
    for forced in [false, true] {
        let mut lab = started(LOCAL, 1);
        lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
        lab.script("a/0", "config-changed", crate::bench::fails()).unwrap();
        lab.configure("a", &[("colour", "blue")]).unwrap();
        lab.run_until_idle().unwrap();
        lab.unscript_all();
        let second = charm(LOCAL).revised("2");
        match forced {
            true => lab.force_refresh("a", &second).unwrap(),
            false => lab.refresh("a", &second).unwrap(),
        }
        lab.run_until_idle().unwrap();
        let runs_second = lab.unit("a/0").unwrap().record.charm.unwrap().digest == second.digest();
        assert_eq!(runs_second, forced);
        lab.resolve("a/0", periapt_host_api::command::ResolveMode::Retry).unwrap();
        lab.run_until_idle().unwrap();
        let expected: &[&str] = match forced {
            // The failed hook runs under the new code, and the configuration's hash covers the charm
            // (U-35).
            true => &["config-changed", "config-changed"],
            false => &["config-changed", "config-changed", "upgrade-charm", "config-changed"],
        };
        assert_eq!(later(&lab), expected, "forced: {forced}");
    }
}
