//! B: agents that die between any two steps (`docs/hook-model.md` section 0, 1.6).

use std::time::Duration;

use periapt_host_api::{
    Digest,
    event::Event,
    record::{HookStep, Operation},
    status::AgentStatus,
};
use periapt_lab::{FaultRates, HookRunState, Lab, invariants};
use periapt_model::{RecordBody, StatusRecord};

use crate::bench::{LOCAL, PEERED, Related, START_UP, charm, does, lab, runs, started};

fn queued(event: Event) -> Operation {
    Operation::Hook { event, step: HookStep::Queued }
}

/// Returns true if a unit's agent ever reported an error.
fn was_in_error(lab: &Lab, unit: &str) -> bool {
    lab.records_of(unit).any(|record| {
        matches!(record, RecordBody::Status(StatusRecord::Agent(info)) if info.status == AgentStatus::Error)
    })
}

#[test]
fn b01_a_queued_hook_runs_when_the_agent_starts() {
    let mut lab = started(LOCAL, 1);
    lab.kill_agent("host").unwrap();
    lab.alter_unit("a/0", |unit| unit.record.operation = queued(Event::UpgradeCharm)).unwrap();
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[START_UP.len()..], ["upgrade-charm", "config-changed"]);
}

#[test]
fn b04_a_queued_install_of_a_dying_unit_does_not_run() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    while lab.unit("a/0").map_or(true, |unit| unit.record.operation != queued(Event::Install)) {
        assert!(lab.step("a/0").unwrap(), "install is never queued");
    }
    lab.wait(Duration::from_secs(1)).unwrap();
    lab.kill_agent("host").unwrap();
    // Its agent has reported, so the controller does not remove it without the agent (L-1).
    lab.alter_unit("a/0", |unit| unit.agent_status.status = AgentStatus::Idle).unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.trace().is_empty(), "{:?}", lab.trace());
    assert!(lab.unit("a/0").is_err());
    assert!(!lab.is_looked_after("a/0"));
}

#[test]
fn b05_an_upgrade_that_was_under_way_goes_on_to_the_newest_charm() {
    let mut lab = started(LOCAL, 1);
    let (second, third) = (charm(LOCAL).revised("2").unusable("it is broken"), charm(LOCAL).revised("3"));
    lab.refresh("a", &second).unwrap();
    lab.run_until_idle().unwrap();
    assert!(matches!(lab.unit("a/0").unwrap().record.operation, Operation::DeployFailed { .. }));
    lab.kill_agent("host").unwrap();
    lab.refresh("a", &third).unwrap();
    lab.start_agent("host").unwrap();
    lab.advance(Duration::from_secs(600)).unwrap();
    let upgraded: Vec<_> = runs(&lab, "a/0").split_off(START_UP.len());
    assert_eq!(upgraded[..2], ["upgrade-charm", "config-changed"]);
    assert_eq!(upgraded.iter().filter(|hook| *hook == "upgrade-charm").count(), 1);
    assert_eq!(lab.unit("a/0").unwrap().record.charm.unwrap().digest, third.digest());
}

#[test]
fn b05_a_charm_that_is_replaced_between_its_arrival_and_the_commit_gives_way() {
    let mut lab = started(LOCAL, 1);
    let (second, third) = (charm(LOCAL).revised("2"), charm(LOCAL).revised("3"));
    lab.refresh("a", &second).unwrap();
    assert!(lab.micro_step("a/0").unwrap(), "the second charm is in place, and not committed");
    lab.refresh("a", &third).unwrap();
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[START_UP.len()..], ["upgrade-charm", "config-changed"]);
    assert_eq!(lab.unit("a/0").unwrap().record.charm.unwrap().digest, third.digest());
}

#[test]
fn b05_the_same_without_a_crash() {
    let mut lab = started(LOCAL, 1);
    let (second, third) = (charm(LOCAL).revised("2"), charm(LOCAL).revised("3"));
    lab.refresh("a", &second).unwrap();
    assert!(lab.micro_step("a/0").unwrap());
    lab.refresh("a", &third).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.unit("a/0").unwrap().record.charm.unwrap().digest, third.digest());
    assert!(!was_in_error(&lab, "a/0"));
}

#[test]
fn b05_a_charm_that_was_replaced_is_not_tried_again_before_the_news_of_the_other_arrives() {
    let mut lab = started(LOCAL, 1);
    let (second, third) = (charm(LOCAL).revised("2"), charm(LOCAL).revised("3"));
    let (code, seq) = (started_from(&lab), lab.unit("a/0").unwrap().record.seq);
    lab.refresh("a", &second).unwrap();
    assert!(lab.micro_step("a/0").unwrap());
    lab.refresh("a", &third).unwrap();
    lab.hold_frames("host").unwrap();
    // An immediate retry would never come to rest.
    lab.run_until_idle().unwrap();
    lab.advance(Duration::from_secs(600)).unwrap();
    assert_eq!(
        (started_from(&lab), lab.unit("a/0").unwrap().record.seq),
        (code, seq),
        "nothing of it happened"
    );
    lab.release_frames("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[START_UP.len()..], ["upgrade-charm", "config-changed"]);
    assert_eq!(started_from(&lab), third.digest());
    assert!(!was_in_error(&lab, "a/0"));
}

/// Returns the charm that `a/0` has installed.
fn started_from(lab: &Lab) -> Digest {
    lab.unit("a/0").unwrap().record.charm.unwrap().digest
}

#[test]
fn b06_without_a_record_a_unit_begins_with_its_applications_present_charm() {
    let mut lab = lab();
    lab.kill_agent("host").unwrap();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    let present = charm(LOCAL).revised("2");
    lab.refresh("a", &present).unwrap();
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), START_UP);
    let record = &lab.unit("a/0").unwrap().record;
    assert_eq!(record.charm.unwrap().digest, present.digest());
}

#[test]
fn b09_a_hook_that_the_agents_end_cut_short_runs_again_and_is_no_failure() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.script("a/0", "install", does("open-port 80")).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.wait(Duration::from_millis(60)).unwrap();
    lab.kill_agent("host").unwrap();
    assert!(lab.unit("a/0").unwrap().ports.is_empty(), "nothing of it was committed");
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), [&["install"][..], &START_UP].concat());
    let [cut, again] = [&lab.trace()[0], &lab.trace()[1]];
    assert_eq!((cut.state, again.state), (HookRunState::Lost, HookRunState::Committed));
    assert_eq!(cut.operation, again.operation);
    assert_eq!((cut.attempt, again.attempt), (1, 1));
    assert_eq!(lab.unit("a/0").unwrap().ports.len(), 1);
    assert!(!was_in_error(&lab, "a/0"));
}

/// Builds a model with relations, peers, a leader that writes, and removals.
fn life() -> Lab {
    let mut lab = Lab::new(3).unwrap();
    let ring = charm(PEERED).with_handler(|hook| {
        let name = hook.event().hook_name();
        if name.ends_with("relation-created") {
            let number = hook.unit().number();
            hook.tool(&format!("relation-set number={number}"))?;
            if hook.tool("is-leader")?.trim() == "True" {
                hook.tool("relation-set --app leader=known")?;
            }
        }
        Ok(())
    });
    lab.deploy("a", &ring, 2).unwrap();
    lab.hold("a/1").unwrap();
    lab
}

/// Returns the parts of the final state that crashes must not change.
fn summary(lab: &Lab) -> (Vec<String>, Vec<String>, Vec<String>) {
    let bags = lab.state().unwrap().relations_with_bags().flat_map(|id| lab.state().unwrap().bags(id));
    let bags = bags.map(|bag| format!("{:?} {:?}", bag.key, bag.settings)).collect();
    (lab.hooks_of("a/0"), lab.hooks_of("a/1"), bags)
}

#[test]
fn a_runner_that_dies_between_any_two_steps_changes_nothing() {
    let undisturbed = {
        let mut lab = life();
        lab.run_until_idle().unwrap();
        lab.release("a/1").unwrap();
        lab.run_until_idle().unwrap();
        summary(&lab)
    };
    assert!(undisturbed.2.iter().any(|bag| bag.contains("leader")), "{undisturbed:?}");
    let mut steps = 0;
    loop {
        let mut lab = life();
        let mut ended = false;
        for _ in 0..steps {
            ended |= !lab.micro_step("a/0").unwrap();
        }
        lab.crash_runner("host").unwrap();
        lab.run_until_idle().unwrap();
        lab.release("a/1").unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(summary(&lab), undisturbed, "killed after {steps} steps");
        assert_eq!(invariants::order_violations(lab.trace()), []);
        assert!(!was_in_error(&lab, "a/0"));
        if ended {
            break;
        }
        steps += 1;
    }
    assert!(steps > 20, "only {steps} steps were tried");
}

#[test]
fn an_answer_that_is_lost_changes_nothing() {
    let mut lab = life();
    lab.set_fault_rates(FaultRates { lost_answers: 900, ..FaultRates::default() });
    lab.run_until_idle().unwrap();
    lab.release("a/1").unwrap();
    lab.run_until_idle().unwrap();
    let mut calm = life();
    calm.run_until_idle().unwrap();
    calm.release("a/1").unwrap();
    calm.run_until_idle().unwrap();
    assert_eq!(summary(&lab), summary(&calm));
}

#[test]
fn f22_a_restarted_agent_runs_created_no_second_time() {
    let mut bench = Related::joined(2);
    bench.lab.crash_runner("host").unwrap();
    assert!(bench.news().is_empty());
    bench.lab.kill_agent("host").unwrap();
    bench.lab.start_agent("host").unwrap();
    assert!(bench.news().is_empty());
}
