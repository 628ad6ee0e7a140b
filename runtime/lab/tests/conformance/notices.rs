//! Notices of workloads: custom ones and those of checks, in which order a unit is told of them, and that none is lost or
//! told twice.

use std::{collections::BTreeMap, time::Duration};

use periapt_host_api::{
    command::ResolveMode,
    event::Event,
    notice::{NoticeContext, WorkloadNotice},
};
use periapt_lab::{FaultRates, HookRunState, Lab, LabError, Traced};
use proptest::prelude::*;

use crate::{
    bench::{charm, fails, lab},
    workloads::{SERVED, later},
};

fn custom(id: u64) -> WorkloadNotice {
    WorkloadNotice::Custom { id, key: format!("example.com/{id}") }
}

fn failed(check: &str) -> WorkloadNotice {
    WorkloadNotice::CheckFailed { check: check.to_owned() }
}

fn recovered(check: &str) -> WorkloadNotice {
    WorkloadNotice::CheckRecovered { check: check.to_owned() }
}

/// Returns a model with `a/0`, whose charm knows that its container `web` listens.
pub(crate) fn listening() -> Lab {
    let mut lab = lab();
    lab.deploy("a", &charm(SERVED), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab.start_workload("a/0", "web", "1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["web-pebble-ready"]);
    lab
}

fn notify(lab: &mut Lab, notices: &[WorkloadNotice]) {
    for notice in notices {
        lab.notify("a/0", "web", notice.clone()).unwrap();
    }
}

/// Returns the runs about notices that ended in a state, with what the charm was told.
fn told_as(lab: &Lab, state: HookRunState) -> Vec<String> {
    let runs = lab.trace().iter().filter(|traced| traced.state == state);
    let words = |traced: &Traced| match &traced.event {
        Event::PebbleCustomNotice { workload, id, key } => Some(format!("{} {id} {key}", workload.container)),
        Event::PebbleCheckFailed { workload, check } => Some(format!("{} {check} down", workload.container)),
        Event::PebbleCheckRecovered { workload, check } => Some(format!("{} {check} up", workload.container)),
        _ => None,
    };
    runs.filter_map(words).collect()
}

fn told(lab: &Lab) -> Vec<String> {
    told_as(lab, HookRunState::Committed)
}

#[test]
fn y05_notices_are_told_after_the_pebble_ready_of_their_start_and_after_all_else() {
    let mut lab = lab();
    lab.deploy("a", &charm(SERVED), 1).unwrap();
    lab.deploy("b", &charm("name: b\nprovides: {db: {interface: sql}}\n"), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab.start_workload("a/0", "web", "1").unwrap();
    notify(&mut lab, &[custom(1)]);
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab), ["web-pebble-ready", "web-pebble-custom-notice"]);
    lab.hold("a/0").unwrap();
    notify(&mut lab, &[failed("up"), custom(1)]);
    lab.start_workload("a/0", "side", "1").unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.integrate("a:db", "b:db").unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        later(&lab)[2..],
        [
            "db-relation-created",
            "side-pebble-ready",
            "config-changed",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
            "web-pebble-check-failed",
            "web-pebble-custom-notice",
        ]
    );
}

#[test]
fn y05_containers_take_turns_in_the_order_of_their_notices() {
    let mut lab = listening();
    lab.start_workload("a/0", "side", "1").unwrap();
    lab.run_until_idle().unwrap();
    lab.hold("a/0").unwrap();
    for (container, id) in [("web", 1), ("side", 1), ("web", 2), ("side", 2)] {
        lab.notify("a/0", container, custom(id)).unwrap();
    }
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    let expected = ["web 1", "side 1", "web 2", "side 2"];
    let told = told(&lab);
    assert!(told.iter().zip(expected).all(|(told, expected)| told.starts_with(expected)), "{told:?}");
    assert_eq!(told.len(), expected.len());
}

#[test]
fn y06_a_notice_that_repeats_while_a_hook_runs_is_told_once_in_its_last_place() {
    let mut lab = listening();
    lab.hold("a/0").unwrap();
    notify(&mut lab, &[custom(1), custom(2), custom(1), custom(1)]);
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab), ["web 2 example.com/2", "web 1 example.com/1"]);
    notify(&mut lab, &[custom(1)]);
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab).len(), 3, "a later repetition is told");
    // One that repeats while the hook about it runs is told again.
    notify(&mut lab, &[custom(7)]);
    assert!(lab.start_hook("a/0").unwrap());
    notify(&mut lab, &[custom(7)]);
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab)[3..], ["web 7 example.com/7", "web 7 example.com/7"]);
}

#[test]
fn y07_a_check_that_failed_and_recovered_meanwhile_is_told_both_in_this_order() {
    let mut lab = listening();
    lab.hold("a/0").unwrap();
    notify(&mut lab, &[failed("up"), failed("disk"), recovered("up")]);
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab), ["web up down", "web disk down", "web up up"]);
    lab.hold("a/0").unwrap();
    notify(&mut lab, &[failed("up"), recovered("up"), failed("up")]);
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab)[3..], ["web up up", "web up down"], "the last word is the present state");
}

#[test]
fn y08_a_failed_hook_of_a_notice_runs_again_with_the_same_notice() {
    let mut lab = listening();
    lab.script("a/0", "web-pebble-check-failed", fails()).unwrap();
    notify(&mut lab, &[failed("up")]);
    lab.run_until_idle().unwrap();
    assert_eq!(told_as(&lab, HookRunState::Failed), ["web up down"]);
    notify(&mut lab, &[custom(1), recovered("up")]);
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab), [""; 0], "nothing passes a failed hook");
    lab.unscript_all();
    lab.advance(Duration::from_secs(60)).unwrap();
    assert_eq!(told(&lab), ["web up down", "web 1 example.com/1", "web up up"]);
}

#[test]
fn y08_resolved_without_a_retry_counts_as_told() {
    let mut lab = listening();
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "web-pebble-custom-notice", fails()).unwrap();
    notify(&mut lab, &[custom(1)]);
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    notify(&mut lab, &[failed("up")]);
    lab.run_until_idle().unwrap();
    assert_eq!(
        (told_as(&lab, HookRunState::PassedOver).len(), told(&lab)),
        (1, vec!["web up down".to_owned()])
    );
}

#[test]
fn y09_a_start_ends_the_notices_of_the_one_before_failed_hooks_included() {
    let mut lab = listening();
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "web-pebble-custom-notice", fails()).unwrap();
    notify(&mut lab, &[custom(1), custom(2)]);
    lab.run_until_idle().unwrap();
    assert_eq!(told_as(&lab, HookRunState::Failed).len(), 1);
    lab.unscript_all();
    lab.end_workload("a/0", "web").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(told_as(&lab, HookRunState::Moot), ["web 1 example.com/1"]);
    lab.start_workload("a/0", "web", "2").unwrap();
    notify(&mut lab, &[custom(2)]);
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab).last().unwrap(), "web-pebble-custom-notice");
    assert_eq!(told(&lab), ["web 2 example.com/2"]);
}

#[test]
fn y09_a_dying_unit_is_told_no_notice() {
    let mut lab = listening();
    lab.hold("a/0").unwrap();
    notify(&mut lab, &[failed("up")]);
    lab.remove_unit("a/0").unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(later(&lab)[1..], ["stop", "remove"]);
}

#[test]
fn y10_a_runner_that_dies_in_the_hook_of_a_notice_tells_it_again() {
    let mut lab = listening();
    notify(&mut lab, &[custom(1)]);
    assert!(lab.start_hook("a/0").unwrap());
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(told_as(&lab, HookRunState::Lost), told(&lab));
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(told(&lab), ["web 1 example.com/1"], "another runner does not tell it again");
    let attempts = lab.trace().iter().filter(|traced| traced.event.notice().is_some());
    assert_eq!(attempts.map(|traced| traced.attempt).collect::<Vec<_>>(), [1, 2]);
}

/// A step of a random life. `bool` names one of two containers.
#[derive(Debug, Clone)]
enum Act {
    Notify(bool, u8),
    Start(bool),
    End(bool),
    Fail(usize),
    Fix,
    Configure(u8),
    Interleave(usize),
    Advance(u16),
    CrashRunner,
    /// The keeper dies, and its pods with it.
    KillAgent,
    CutOff,
    Reconnect,
    RestartController,
    Resolve(bool),
}

const FAILING: [&str; 4] =
    ["web-pebble-ready", "web-pebble-custom-notice", "side-pebble-check-failed", "config-changed"];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => (any::<bool>(), 0..6_u8).prop_map(|(second, notice)| Act::Notify(second, notice)),
        2 => any::<bool>().prop_map(Act::Start),
        1 => any::<bool>().prop_map(Act::End),
        2 => (0..FAILING.len()).prop_map(Act::Fail),
        2 => Just(Act::Fix),
        1 => any::<u8>().prop_map(Act::Configure),
        8 => (1..40_usize).prop_map(Act::Interleave),
        2 => (0..400_u16).prop_map(Act::Advance),
        2 => Just(Act::CrashRunner),
        1 => Just(Act::KillAgent),
        1 => Just(Act::CutOff),
        1 => Just(Act::Reconnect),
        1 => Just(Act::RestartController),
        1 => any::<bool>().prop_map(Act::Resolve),
    ]
}

fn container(second: bool) -> &'static str {
    if second { "side" } else { "web" }
}

/// The notices of each start that the test made, by container and boot id, in order.
#[derive(Default)]
struct Made {
    starts: u32,
    live: BTreeMap<&'static str, String>,
    notices: BTreeMap<(String, String), Vec<WorkloadNotice>>,
}

fn try_to(lab: &mut Lab, act: &Act, made: &mut Made) -> Result<(), LabError> {
    match act {
        Act::Notify(second, notice) => {
            let name = container(*second);
            let Some(boot_id) = made.live.get(name) else { return Ok(()) };
            let notice = match notice {
                0..3 => custom(u64::from(*notice)),
                3 => failed("up"),
                4 => recovered("up"),
                _ => failed("disk"),
            };
            lab.notify("a/0", name, notice.clone())?;
            made.notices.entry((name.to_owned(), boot_id.clone())).or_default().push(notice);
            Ok(())
        }
        Act::Start(second) => {
            made.starts += 1;
            let (name, boot_id) = (container(*second), made.starts.to_string());
            lab.start_workload("a/0", name, &boot_id)?;
            made.live.insert(name, boot_id);
            Ok(())
        }
        Act::End(second) => {
            lab.end_workload("a/0", container(*second))?;
            made.live.remove(container(*second));
            Ok(())
        }
        Act::Fail(hook) => lab.script("a/0", FAILING[*hook], fails()),
        Act::Fix => {
            lab.unscript_all();
            Ok(())
        }
        Act::Configure(value) => lab.configure("a", &[("colour", &format!("c{value}"))]),
        Act::Interleave(steps) => lab.run_interleaved(*steps),
        Act::Advance(seconds) => lab.advance(Duration::from_secs((*seconds).into())),
        Act::CrashRunner => lab.crash_runner("host"),
        Act::KillAgent => {
            for second in [false, true] {
                try_to(lab, &Act::End(second), made)?;
            }
            lab.kill_agent("host")?;
            lab.start_agent("host")
        }
        Act::CutOff => lab.cut_off("host"),
        Act::Reconnect => lab.reconnect("host"),
        Act::RestartController => lab.restart_controller(),
        Act::Resolve(retry) => {
            let mode = if *retry { ResolveMode::Retry } else { ResolveMode::NoRetry };
            lab.resolve("a/0", mode)
        }
    }
}

/// Checks what the charm was told against what was made.
fn check(lab: &Lab, made: &Made) -> Result<(), TestCaseError> {
    let mut listened: BTreeMap<String, u32> = BTreeMap::new();
    let mut last: BTreeMap<(String, String), u64> = BTreeMap::new();
    for traced in lab.trace() {
        let is_told = matches!(traced.state, HookRunState::Committed | HookRunState::PassedOver);
        if let (true, Event::PebbleReady { container }) = (is_told, &traced.event) {
            *listened.entry(container.to_string()).or_default() += 1;
        }
        let Some(origin) = traced.event.notice() else { continue };
        let NoticeContext { container, boot_id, number } = origin;
        let start = (container.to_string(), boot_id.clone());
        // What a charm is told, whatever becomes of the hook, was made under this number.
        let place = usize::try_from(*number).unwrap() - 1;
        let notice = made.notices.get(&start).and_then(|notices| notices.get(place));
        prop_assert_eq!(
            notice.map(|notice| Event::of_notice(notice, origin.clone())),
            Some(traced.event.clone())
        );
        prop_assert!(listened.contains_key(container.as_str()), "told before pebble-ready: {:?}", traced);
        if is_told {
            let before = last.insert(start, *number).unwrap_or_default();
            prop_assert!(*number > before, "{} after {}: {:?}", number, before, traced.event);
        }
    }
    for (name, boot_id) in &made.live {
        let start = ((*name).to_owned(), boot_id.clone());
        let Some(notices) = made.notices.get(&start) else { continue };
        let told: Vec<&WorkloadNotice> = lab
            .trace()
            .iter()
            .filter(|traced| matches!(traced.state, HookRunState::Committed | HookRunState::PassedOver))
            .filter_map(|traced| traced.event.notice())
            .filter(|origin| origin.container.as_str() == *name && origin.boot_id == *boot_id)
            .map(|origin| &notices[usize::try_from(origin.number).unwrap() - 1])
            .collect();
        for (place, notice) in notices.iter().enumerate() {
            if !notices[place + 1..].contains(notice) {
                prop_assert!(told.contains(&notice), "{:?} of {:?} is lost", notice, start);
            }
        }
        let last_of = |notices: &[&WorkloadNotice]| notices.last().copied().cloned();
        prop_assert_eq!(last_of(&told), notices.last().cloned(), "the last word of {:?}", start);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn y10_whatever_dies_no_notice_of_a_live_container_is_lost_or_told_twice(
        seed in any::<u64>(), lost_answers in 0..300_u16, acts in proptest::collection::vec(act(), 1..60)
    ) {
        let mut lab = Lab::new(seed).unwrap();
        lab.deploy("a", &charm(SERVED), 1).unwrap();
        lab.run_until_idle().unwrap();
        lab.set_fault_rates(FaultRates { lost_answers, late_claims: 0 });
        let mut made = Made::default();
        for act in &acts {
            match try_to(&mut lab, act, &mut made) {
                Ok(()) | Err(LabError::Refused(_) | LabError::Unknown { .. }) => {}
                Err(error) => return Err(TestCaseError::fail(format!("{act:?}: {error}"))),
            }
        }
        lab.set_fault_rates(FaultRates { lost_answers: 0, late_claims: 0 });
        lab.unscript_all();
        lab.reconnect("host").unwrap();
        lab.run_until_idle().unwrap();
        lab.advance(Duration::from_secs(600)).unwrap();
        check(&lab, &made)?;
    }
}
