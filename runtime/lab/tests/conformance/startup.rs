//! A: start-up and the ordinary sequence (`docs/hook-model.md` 1.8).

use std::time::Duration;

use periapt_host_api::{
    command::{Command, Force},
    record::{HookStep, Operation},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_lab::{Action, Claims, Ending, FaultRates, invariants};

use crate::bench::{LOCAL, PEERED, REMOTE, START_UP, charm, does, lab, printed, runs, started, workload};

#[test]
fn a01_hooks_run_in_the_startup_order() {
    let mut lab = started(LOCAL, 1);
    assert_eq!(runs(&lab, "a/0"), START_UP);
    lab.advance(Duration::from_secs(60)).unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    assert!(lab.unit("a/0").unwrap().record.leader);
}

#[test]
fn a01_a_unit_that_does_not_lead_hears_of_the_leader_settings_instead() {
    let lab = started(LOCAL, 2);
    assert_eq!(runs(&lab, "a/1"), ["install", "leader-settings-changed", "config-changed", "start"]);
}

#[test]
fn a03_the_peer_relation_is_created_after_install_and_before_leader_elected() {
    let lab = started(PEERED, 1);
    assert_eq!(
        runs(&lab, "a/0"),
        ["install", "ring-relation-created", "leader-elected", "config-changed", "start"]
    );
}

#[test]
fn a03_a_relation_that_was_made_with_the_application_is_created_before_start_too() {
    let mut lab = lab();
    lab.deploy("a", &charm(PEERED), 1).unwrap();
    lab.deploy("b", &charm(REMOTE), 0).unwrap();
    lab.integrate("a", "b").unwrap();
    lab.run_until_idle().unwrap();
    let expected = [
        "install",
        "db-relation-created",
        "ring-relation-created",
        "leader-elected",
        "config-changed",
        "start",
    ];
    assert_eq!(runs(&lab, "a/0"), expected);
}

#[test]
fn a05_a_started_unit_is_idle_and_unknown_and_runs_nothing() {
    let mut lab = started(LOCAL, 1);
    lab.configure_model(&[("update-status-hook-interval", "0")]).unwrap();
    lab.run_until_idle().unwrap();
    let revision = lab.root().revision();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    assert_eq!(lab.root().revision(), revision, "an idle unit writes nothing");
    let (workload, agent) = lab.statuses("a/0").unwrap();
    assert_eq!((workload.status, agent.status), (WorkloadStatus::Unknown, AgentStatus::Idle));
    assert_eq!((workload.message, agent.message), (String::new(), String::new()));
}

#[test]
fn a06_while_install_runs_the_workload_is_in_maintenance() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.wait(Duration::from_millis(50)).unwrap();
    assert_eq!(workload(&lab, "a/0"), (WorkloadStatus::Maintenance, "installing charm software".to_owned()));
    let (_, agent) = lab.statuses("a/0").unwrap();
    assert_eq!((agent.status, agent.message.as_str()), (AgentStatus::Executing, "running install hook"));
}

#[test]
fn a06_a_short_install_sends_its_statuses_with_its_commit() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.wait(Duration::from_millis(49)).unwrap();
    assert_eq!(workload(&lab, "a/0").0, WorkloadStatus::Waiting);
}

#[test]
fn a07_a_status_that_the_charm_set_in_install_is_kept() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", "install", does("status-set blocked choose-a-colour")).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    assert_eq!(workload(&lab, "a/0"), (WorkloadStatus::Blocked, "choose-a-colour".to_owned()));
}

#[test]
fn a08_nothing_runs_before_the_first_frame_came() {
    let mut lab = lab();
    lab.hold_frames("host").unwrap();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.advance(Duration::from_secs(600)).unwrap();
    assert!(lab.trace().is_empty());
    assert_eq!(lab.unit("a/0").unwrap().record.seq, 0);
    lab.release_frames("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
}

#[test]
fn a08_an_agent_that_starts_anew_takes_no_relation_for_gone() {
    let mut bench = crate::bench::Related::joined(1);
    bench.lab.kill_agent("host").unwrap();
    bench.lab.hold_frames("host").unwrap();
    bench.lab.start_agent("host").unwrap();
    assert!(bench.news().is_empty());
    bench.lab.release_frames("host").unwrap();
    assert!(bench.news().is_empty());
    assert!(bench.lab.unit("a/0").unwrap().record.relations.contains_key(&bench.relation));
}

#[test]
fn a09_a_hook_without_handler_counts_as_success() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL).without_handlers(), 1).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("a/0"), START_UP);
    assert!(lab.trace().iter().all(|traced| traced.ending == Some(Ending::Unhandled)));
    assert_eq!(lab.statuses("a/0").unwrap().1.status, AgentStatus::Idle);
}

#[test]
fn a09_start_follows_a_config_changed_without_handler() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", "config-changed", vec![Action::Unhandled]).unwrap();
    for _ in 0..10 {
        lab.step("a/0").unwrap();
        if runs(&lab, "a/0").last().is_some_and(|hook| hook == "config-changed") {
            break;
        }
    }
    let next = &lab.unit("a/0").unwrap().record.operation;
    let start = periapt_host_api::event::Event::Start;
    assert_eq!(*next, Operation::Hook { event: start, step: HookStep::Queued });
}

#[test]
fn a12_a_unit_that_the_controller_does_not_know_runs_nothing() {
    let mut lab = started(LOCAL, 1);
    lab.add_agent("other").unwrap();
    lab.kill_agent("host").unwrap();
    let unit = "a/0".parse().unwrap();
    lab.command(&Command::RemoveUnit {
        unit,
        force: Some(Force { max_wait: 1 }),
        storage: Default::default(),
    })
    .unwrap();
    lab.advance(Duration::from_secs(2)).unwrap();
    assert!(lab.unit("a/0").is_err(), "forced out while its agent was away");
    lab.start_agent("host").unwrap();
    lab.advance(Duration::from_secs(60)).unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    assert!(!lab.is_looked_after("a/0"));
}

#[test]
fn a12_a_unit_that_is_another_agents_runs_only_there() {
    let mut lab = lab();
    // A unit that is bound to no agent would go on with another one after a while.
    lab.deploy_to("a", &charm(LOCAL), 1, "host").unwrap();
    lab.run_until_idle().unwrap();
    lab.add_agent("other").unwrap();
    lab.kill_agent("host").unwrap();
    lab.move_machine_of("a/0", "other").unwrap();
    lab.run_until_idle().unwrap();
    let before = runs(&lab, "a/0").len();
    assert!(before > START_UP.len(), "another host has other addresses");
    lab.kill_agent("other").unwrap();
    lab.start_agent("host").unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.advance(Duration::from_secs(600)).unwrap();
    assert_eq!(runs(&lab, "a/0").len(), before);
}

/// The first hooks of a lone unit with peers.
const PEERED_START_UP: [&str; 5] =
    ["install", "ring-relation-created", "leader-elected", "config-changed", "start"];

#[test]
fn u4_a_lone_unit_is_elected_before_it_is_configured_after_however_many_steps_it_is_claimed_for() {
    for steps in 0..40 {
        let mut lab = lab();
        lab.set_claims("host", Claims::Unsent).unwrap();
        lab.deploy("a", &charm(PEERED), 1).unwrap();
        for _ in 0..steps {
            lab.micro_step("a/0").unwrap();
        }
        lab.set_claims("host", Claims::Answered).unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(runs(&lab, "a/0"), PEERED_START_UP, "claimed for after {steps} steps");
    }
}

#[test]
fn u4_who_leads_is_told_before_config_changed_however_slow_each_keeper_is() {
    for seed in 0..20 {
        let mut lab = periapt_lab::Lab::new(seed).unwrap();
        lab.add_agent("far").unwrap();
        lab.set_fault_rates(FaultRates {
            late_claims: if seed == 0 { 1000 } else { 800 },
            ..FaultRates::default()
        });
        lab.deploy("a", &charm(PEERED), 3).unwrap();
        lab.deploy("b", &charm(REMOTE), 1).unwrap();
        lab.integrate("a", "b").unwrap();
        lab.run_interleaved(60).unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(invariants::order_violations(lab.trace()), [], "seed {seed}");
        let told = |unit: &str, hook: &str| lab.hooks_of(unit).iter().filter(|ran| *ran == hook).count();
        let elected: usize = (0..3).map(|number| told(&format!("a/{number}"), "leader-elected")).sum();
        let others: usize =
            (0..3).map(|number| told(&format!("a/{number}"), "leader-settings-changed")).sum();
        assert_eq!((elected, others), (1, 2), "seed {seed}");
        assert_eq!((told("b/0", "leader-elected"), told("b/0", "leader-settings-changed")), (1, 0));
    }
}

#[test]
fn u4_a_unit_that_was_granted_leadership_is_elected_though_its_keeper_heard_no_answer() {
    let mut lab = lab();
    lab.set_claims("host", Claims::Unanswered).unwrap();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", "leader-elected", does("is-leader")).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    printed(&lab, "is-leader", "True\n");
}

#[test]
fn u41_a_unit_whose_claim_is_never_answered_waits_and_goes_when_it_is_removed() {
    let mut lab = lab();
    lab.set_claims("host", Claims::Unsent).unwrap();
    lab.deploy("a", &charm(PEERED), 1).unwrap();
    lab.advance(Duration::from_secs(3_600)).unwrap();
    assert_eq!(runs(&lab, "a/0"), ["install", "ring-relation-created"]);
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), ["install", "ring-relation-created", "remove"]);
    assert!(lab.unit("a/0").is_err());
}
