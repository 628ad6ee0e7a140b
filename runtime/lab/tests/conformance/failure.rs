//! C: failed hooks, retries and `resolved` (`docs/hook-model.md` 1.9).

use std::time::Duration;

use periapt_host_api::{
    ErrorCode,
    command::{Command, Force, RelationSelector, ResolveMode},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_lab::{Action, Lab, Traced};
use serde_json::json;

use crate::bench::{LOCAL, Related, START_UP, charm, check_error, fails, lab, runs, started};

/// Returns a model in which `a/0`'s hook of this name fails, without automatic retries.
fn failing(hook: &str) -> Lab {
    let mut lab = lab();
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", hook, fails()).unwrap();
    lab.run_until_idle().unwrap();
    lab
}

/// Returns the start times of the runs of one hook of `a/0`, in seconds since the first.
fn seconds_of(lab: &Lab, hook: &str) -> Vec<f64> {
    let of_hook: Vec<&Traced> = lab.trace().iter().filter(|traced| traced.to_string() == hook).collect();
    let first = of_hook[0].at;
    of_hook.iter().map(|traced| traced.at.duration_since(first).as_secs_f64()).collect()
}

#[test]
fn c01_a_failed_install_is_reported_and_nothing_else_runs() {
    let mut lab = failing("install");
    lab.advance(Duration::from_secs(3_600)).unwrap();
    assert_eq!(runs(&lab, "a/0"), ["install"]);
    check_error(&lab, "a/0", "install", &json!({"hook": "install"}));
    assert!(!lab.unit("a/0").unwrap().record.installed);
}

#[test]
fn c02_resolved_without_retry_passes_over_install() {
    let mut lab = failing("install");
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    assert_eq!(lab.statuses("a/0").unwrap().1.status, AgentStatus::Idle);
    assert_ne!(lab.statuses("a/0").unwrap().0.status, WorkloadStatus::Error);
}

#[test]
fn c03_resolved_with_retry_runs_install_again_and_reports_again() {
    let mut lab = failing("install");
    lab.advance(Duration::from_secs(7)).unwrap();
    let since = lab.statuses("a/0").unwrap().0.since;
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), ["install", "install"]);
    check_error(&lab, "a/0", "install", &json!({"hook": "install"}));
    assert!(lab.statuses("a/0").unwrap().0.since > since, "it was reported anew");
    assert!(lab.unit("a/0").unwrap().resolved.is_none());
}

#[test]
fn c03_resolved_with_retry_goes_on_once_the_cause_is_fixed() {
    let mut lab = failing("install");
    lab.unscript("a/0", "install").unwrap();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), [&["install"][..], &START_UP].concat());
}

#[test]
fn c05_start_follows_a_config_changed_that_is_passed_over() {
    let mut lab = failing("config-changed");
    assert_eq!(runs(&lab, "a/0"), ["install", "leader-elected", "config-changed"]);
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
}

#[test]
fn c07_the_error_of_a_joined_hook_names_relation_and_remote_unit() {
    let mut bench = Related::new(1);
    bench.lab.script("a/0", "db-relation-joined", fails()).unwrap();
    bench.run();
    let data = json!({"hook": "db-relation-joined", "relation-id": bench.relation.0, "remote-unit": "b/0"});
    check_error(&bench.lab, "a/0", "db-relation-joined", &data);
    assert_eq!(bench.news(), ["db-relation-created"]);
}

#[test]
fn c08_the_error_of_a_broken_hook_names_the_relation_alone() {
    let mut bench = Related::joined(1);
    bench.lab.script("a/0", "db-relation-broken", fails()).unwrap();
    bench.lab.remove_relation(bench.relation).unwrap();
    bench.run();
    let data = json!({"hook": "db-relation-broken", "relation-id": bench.relation.0});
    check_error(&bench.lab, "a/0", "db-relation-broken", &data);
    assert_eq!(bench.news(), ["db-relation-departed b/0"]);
}

#[test]
fn c09_a_failed_hook_is_tried_again_ever_later_and_at_most_five_minutes_apart() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", "install", fails()).unwrap();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    let times = seconds_of(&lab, "install");
    let waits: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.len() > 12, "{waits:?}");
    for (wait, wanted) in waits.iter().zip([5.0_f64, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]) {
        assert!((wanted * 0.899..=(wanted * 1.101).min(300.01)).contains(wait), "{wait} for {wanted}");
    }
    assert!(waits.iter().all(|wait| *wait <= 300.01), "{waits:?}");
    let attempts: Vec<u32> = lab.trace().iter().map(|traced| traced.attempt).collect();
    assert_eq!(attempts[..4], [1, 2, 3, 4]);
}

#[test]
fn c09_the_back_off_goes_on_where_it_was_after_the_agent_died() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", "install", fails()).unwrap();
    lab.advance(Duration::from_secs(50)).unwrap();
    let tries = runs(&lab, "a/0").len();
    assert_eq!(tries, 4, "at 0, 5, 15 and 35 seconds");
    lab.kill_agent("host").unwrap();
    lab.start_agent("host").unwrap();
    lab.advance(Duration::from_secs(5)).unwrap();
    assert_eq!(runs(&lab, "a/0").len(), tries, "a restart alone runs no hook");
    lab.advance(Duration::from_secs(40)).unwrap();
    assert_eq!(lab.trace().last().unwrap().attempt, 5);
}

#[test]
fn c10_without_automatic_retry_a_failed_hook_waits_for_ever() {
    let mut lab = failing("install");
    lab.unscript("a/0", "install").unwrap();
    lab.advance(Duration::from_secs(6 * 3_600)).unwrap();
    assert_eq!(runs(&lab, "a/0"), ["install"]);
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("a/0"), START_UP);
}

#[test]
fn c11_resolved_stops_the_timer_and_starts_the_back_off_over() {
    for mode in [ResolveMode::Retry, ResolveMode::NoRetry] {
        let mut lab = lab();
        lab.deploy("a", &charm(LOCAL), 1).unwrap();
        lab.script("a/0", "install", fails()).unwrap();
        lab.script("a/0", "leader-elected", fails()).unwrap();
        // The fourth attempt was at 35 s; the next is due at 75 s.
        lab.advance(Duration::from_secs(45)).unwrap();
        let tries = runs(&lab, "a/0").len();
        lab.resolve("a/0", mode).unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(runs(&lab, "a/0").len(), tries + 1);
        let failed = lab.trace().last().unwrap().clone();
        assert_eq!(failed.attempt, 1, "{mode:?}");
        lab.advance(Duration::from_secs(8)).unwrap();
        let next = lab.trace().last().unwrap();
        let wait = next.at.duration_since(failed.at).as_secs_f64();
        assert!((4.4..=5.6).contains(&wait), "{mode:?}: {wait}");
        assert_eq!((next.attempt, &next.event), (2, &failed.event));
    }
}

#[test]
fn c12_update_status_does_not_run_in_a_hook_error() {
    let mut lab = failing("start");
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    lab.advance(Duration::from_secs(400)).unwrap();
    let before = runs(&lab, "a/0");
    assert_eq!(before.last().unwrap(), "update-status", "else this test shows nothing");
    lab.script("a/0", "config-changed", fails()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    assert_eq!(runs(&lab, "a/0")[before.len()..], ["config-changed"]);
}

#[test]
fn c14_a_dying_unit_in_error_is_not_torn_down_before_it_is_fixed() {
    let mut lab = failing("config-changed");
    lab.remove_unit("a/0").unwrap();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    assert_eq!(runs(&lab, "a/0"), ["install", "leader-elected", "config-changed"]);
    lab.unscript("a/0", "config-changed").unwrap();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    let rest = runs(&lab, "a/0").split_off(3);
    assert_eq!(rest, ["config-changed", "start", "stop", "remove"]);
    assert!(lab.unit("a/0").is_err());
}

#[test]
fn c14_a_started_unit_runs_the_failed_hook_then_stop_and_remove() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "config-changed", fails()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("a/0")[START_UP.len()..], ["config-changed", "stop", "remove"]);
    assert!(lab.unit("a/0").is_err());
}

#[test]
fn c15_a_dead_unit_in_error_is_left_at_once() {
    let mut lab = failing("config-changed");
    let unit = "a/0".parse().unwrap();
    lab.command(&Command::RemoveUnit {
        unit,
        force: Some(Force { max_wait: 60 }),
        storage: Default::default(),
    })
    .unwrap();
    lab.advance(Duration::from_secs(59)).unwrap();
    assert!(lab.is_looked_after("a/0"));
    lab.advance(Duration::from_secs(2)).unwrap();
    assert!(!lab.is_looked_after("a/0"));
    assert!(lab.unit("a/0").is_err());
    assert_eq!(runs(&lab, "a/0"), ["install", "leader-elected", "config-changed"]);
}

#[test]
fn c16_resolving_a_unit_that_is_not_in_error_is_refused() {
    let mut lab = started(LOCAL, 1);
    let error = lab.resolve("a/0", ResolveMode::Retry).unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::Conflict);
    assert_eq!(refusal.message, "unit \"a/0\" is not in an error state");
}

#[test]
fn c16_an_answer_serves_one_failure_only() {
    let mut lab = failing("install");
    lab.script("a/0", "leader-elected", fails()).unwrap();
    lab.hold("a/0").unwrap();
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    let error = lab.resolve("a/0", ResolveMode::NoRetry).unwrap_err();
    assert!(error.to_string().contains("already resolved"), "{error}");
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        runs(&lab, "a/0"),
        ["install", "leader-elected"],
        "the second failure waits for its own answer"
    );
}

#[test]
fn a_failed_hook_leaves_its_statuses_and_its_log_and_nothing_else() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    let tools = ["open-port 80", "leader-set a=1", "status-set blocked stuck", "juju-log done-for"];
    let mut actions: Vec<Action> = tools.iter().map(|line| Action::tool(line)).collect();
    actions.push(Action::fail("out of luck"));
    lab.script("a/0", "install", actions).unwrap();
    lab.run_until_idle().unwrap();
    let unit = lab.unit("a/0").unwrap();
    assert!(unit.ports.is_empty());
    assert_eq!(unit.workload_status.message, "stuck");
    assert!(unit.record.status_set);
    let application = lab.state().unwrap().application(&"a".parse().unwrap()).unwrap();
    assert!(application.leader_settings.is_empty());
    let logged = lab.records_of("a/0").filter_map(|record| match record {
        periapt_model::RecordBody::Log(line) => Some(line.message.clone()),
        _ => None,
    });
    let logged: Vec<String> = logged.collect();
    assert!(logged.iter().any(|line| line == "done-for"), "{logged:?}");
    assert!(logged.iter().any(|line| line.contains("out of luck")), "{logged:?}");
}

fn remove_by_force(bench: &mut Related) {
    let relation = RelationSelector::Id(bench.relation);
    bench.lab.command(&Command::RemoveRelation { relation, force: Some(Force { max_wait: 0 }) }).unwrap();
}

#[test]
fn u16_a_failed_hook_of_a_relation_that_was_removed_by_force_is_passed_over() {
    for hook in ["db-relation-created", "db-relation-joined", "db-relation-changed"] {
        for automatically in ["true", "false"] {
            let mut bench = Related::unheard(1);
            bench.lab.configure_model(&[("automatically-retry-hooks", automatically)]).unwrap();
            bench.lab.script("a/0", hook, fails()).unwrap();
            bench.lab.release("a/0").unwrap();
            bench.run();
            let failed = runs(&bench.lab, "a/0");
            assert!(failed.last().unwrap().starts_with(hook), "{failed:?}");
            remove_by_force(&mut bench);
            bench.run();
            let after = runs(&bench.lab, "a/0");
            bench.lab.advance(Duration::from_secs(3_600)).unwrap();
            assert_eq!(bench.lab.statuses("a/0").unwrap().1.status, AgentStatus::Idle, "{hook}");
            assert!(after[failed.len()..].iter().all(|ran| !ran.starts_with(hook)), "{after:?}");
            assert!(bench.lab.unit("a/0").unwrap().record.relations.is_empty());
            assert!(!bench.lab.mirror("host").unwrap().relations.contains_key(&bench.relation));
        }
    }
}
