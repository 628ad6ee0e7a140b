//! Hooks that are cut short beside workloads: they run again, or put their unit in error, as the application says.

use std::time::Duration;

use periapt_host_api::{command::ResolveMode, event::Event, status::WorkloadStatus};
use periapt_lab::{HookRunState, Lab, Traced};

use crate::{
    bench::{START_UP, charm, fails, lab, runs},
    notices::listening,
    workloads::SERVED,
};

const ERROR: &str =
    "hook failed: \"config-changed\": it was cut short after it may have changed its workload";

/// Makes config-changed of `a/0` due, and lets the runner die in it.
fn cut(lab: &mut Lab) {
    lab.configure("a", &[("colour", "blue")]).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.crash_runner("host").unwrap();
}

/// Returns a model in which the runner of `a/0` died in config-changed, beside the workload of its container `web`.
fn cut_short(crash: &str) -> Lab {
    let mut lab = listening();
    lab.configure("a", &[("workload-crash", crash)]).unwrap();
    cut(&mut lab);
    lab
}

/// Returns the runs of config-changed after the start-up of `a/0`, with their attempts.
fn attempts(lab: &Lab) -> Vec<(HookRunState, u32)> {
    let of_event = |traced: &&Traced| traced.event == Event::ConfigChanged;
    lab.trace().iter().filter(of_event).skip(1).map(|traced| (traced.state, traced.attempt)).collect()
}

#[track_caller]
fn assert_waits_for_an_operator(lab: &mut Lab) {
    let before = runs(lab, "a/0");
    lab.advance(Duration::from_secs(7_200)).unwrap();
    assert_eq!(runs(lab, "a/0"), before);
    let (workload, _) = lab.statuses("a/0").unwrap();
    assert_eq!((workload.status, workload.message.as_str()), (WorkloadStatus::Error, ERROR));
    assert_eq!(serde_json::Value::Object(workload.data), serde_json::json!({"hook": "config-changed"}));
}

#[test]
fn y11_a_hook_cut_short_beside_workloads_runs_again_and_was_no_failure() {
    let mut unset = listening();
    cut(&mut unset);
    for mut lab in [unset, cut_short("retry")] {
        lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(attempts(&lab), [(HookRunState::Lost, 1), (HookRunState::Committed, 2)]);
        assert_eq!(lab.unit("a/0").unwrap().record.begun, None);
        assert_ne!(lab.statuses("a/0").unwrap().0.status, WorkloadStatus::Error);
    }
}

#[test]
fn y11_it_runs_again_though_what_it_was_about_is_as_it_was_before() {
    let mut lab = listening();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.configure("a", &[("colour", "red")]).unwrap();
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(attempts(&lab), [(HookRunState::Lost, 1), (HookRunState::Committed, 2)]);
}

#[test]
fn y11_a_hook_that_began_before_any_workload_listened_runs_again_whatever_its_application_says() {
    let mut lab = lab();
    lab.deploy("a", &charm(SERVED), 1).unwrap();
    lab.configure("a", &[("workload-crash", "error")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.start_workload("a/0", "web", "1").unwrap();
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[..4], START_UP);
    let states: Vec<_> = attempts(&lab).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, [HookRunState::Lost, HookRunState::Committed]);
}

#[test]
fn y12_an_application_has_units_wait_for_an_operator_before_such_a_hook_runs_again() {
    let mut lab = cut_short("error");
    lab.run_until_idle().unwrap();
    assert_eq!(attempts(&lab), [(HookRunState::Lost, 1)]);
    assert_waits_for_an_operator(&mut lab);
    // An answer serves one cut.
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(attempts(&lab), [(HookRunState::Lost, 1), (HookRunState::Lost, 2)]);
    assert_waits_for_an_operator(&mut lab);
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(attempts(&lab).last(), Some(&(HookRunState::Committed, 3)));
    assert_ne!(lab.statuses("a/0").unwrap().0.status, WorkloadStatus::Error);
}

#[test]
fn y12_such_a_hook_is_passed_over_if_the_operator_says_so() {
    let mut lab = cut_short("error");
    lab.run_until_idle().unwrap();
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    lab.run_until_idle().unwrap();
    let states: Vec<_> = attempts(&lab).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, [HookRunState::Lost, HookRunState::PassedOver]);
    assert_ne!(lab.statuses("a/0").unwrap().0.status, WorkloadStatus::Error);
}

#[test]
fn y12_nothing_else_runs_before_whatever_became_due_meanwhile() {
    let mut lab = cut_short("error");
    lab.start_workload("a/0", "web", "2").unwrap();
    lab.configure("a", &[("colour", "green")]).unwrap();
    lab.reboot_host("host").unwrap();
    let before = runs(&lab, "a/0").len();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0").len(), before);
    assert_waits_for_an_operator(&mut lab);
}

#[test]
fn y12_the_hook_runs_again_once_its_application_says_so() {
    let mut lab = cut_short("error");
    lab.run_until_idle().unwrap();
    assert_waits_for_an_operator(&mut lab);
    lab.configure("a", &[("workload-crash", "retry")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(attempts(&lab), [(HookRunState::Lost, 1), (HookRunState::Committed, 2)]);
}

#[test]
fn y12_a_hook_that_fails_by_itself_is_tried_again_as_ever() {
    let mut lab = listening();
    lab.configure("a", &[("workload-crash", "error")]).unwrap();
    lab.script("a/0", "config-changed", fails()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.advance(Duration::from_secs(60)).unwrap();
    assert_eq!(attempts(&lab), [(HookRunState::Failed, 1), (HookRunState::Committed, 2)]);
}

#[test]
fn y13_the_beginning_of_a_hook_beside_workloads_is_on_record_before_it_runs() {
    let mut lab = listening();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    let begun = lab.unit("a/0").unwrap().record.begun.clone().unwrap();
    assert_eq!((begun.event, begun.attempt, begun.beside_workloads), (Event::ConfigChanged, 1, true));
    lab.run_until_idle().unwrap();
    assert_eq!(lab.unit("a/0").unwrap().record.begun, None);
}
