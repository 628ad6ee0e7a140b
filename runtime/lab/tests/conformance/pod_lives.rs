//! Random lives of a unit with real cores of pods: workloads that end, hang and are killed, checks and hooks that fail;
//! pods, runners, keepers, hosts and controllers that die between any two steps. Charm and workloads agree at the end.

use std::{collections::BTreeSet, time::Duration};

use periapt_host_api::{command::ResolveMode, event::Event};
use periapt_lab::{FaultRates, HookRunState, Lab, LabError, ProbeAnswer, ProcessLife, Traced, invariants};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use crate::{
    bench::fails,
    pods::{CONTAINERS, SERVICES, all, deploy, notify, running, url},
};

/// A step of a life. A number names one of two containers, or one of two services.
#[derive(Debug, Clone)]
enum Act {
    Kill(usize, usize),
    EndPod(usize),
    Live(usize, usize, ProcessLife),
    Answer(usize, ProbeAnswer),
    Notify(usize, u8),
    Fail(usize),
    Fix,
    Configure(u8),
    Interleave(usize),
    Advance(u16),
    CrashRunner,
    /// The runner dies while a hook runs.
    CutShort,
    /// The keeper dies, and the next one comes after some seconds.
    LoseKeeper(u16),
    RebootHost,
    CutOff,
    Reconnect,
    RestartController,
    Resolve(bool),
}

const FAILING: [&str; 5] = [
    "web-pebble-ready",
    "side-pebble-ready",
    "web-pebble-custom-notice",
    "side-pebble-check-failed",
    "config-changed",
];

fn act() -> impl Strategy<Value = Act> {
    let two = || 0..2_usize;
    let life = prop_oneof![
        2 => Just(ProcessLife::Serves),
        1 => Just(ProcessLife::IgnoresTerm),
        1 => Just(ProcessLife::Missing),
        2 => (0..2, 0..30_000_u64).prop_map(|(code, after)| ProcessLife::Exits(code, Duration::from_millis(after))),
        3 => Just(ProcessLife::Drawn),
    ];
    let answer = prop_oneof![
        2 => Just(ProbeAnswer::Well),
        2 => Just(ProbeAnswer::Fails),
        1 => Just(ProbeAnswer::Silent),
        1 => Just(ProbeAnswer::Drawn),
    ];
    prop_oneof![
        3 => (two(), two()).prop_map(|(container, service)| Act::Kill(container, service)),
        2 => two().prop_map(Act::EndPod),
        2 => (two(), two(), life).prop_map(|(container, service, life)| Act::Live(container, service, life)),
        4 => (two(), answer).prop_map(|(container, answer)| Act::Answer(container, answer)),
        6 => (two(), 0..4_u8).prop_map(|(container, key)| Act::Notify(container, key)),
        2 => (0..FAILING.len()).prop_map(Act::Fail),
        2 => Just(Act::Fix),
        2 => any::<u8>().prop_map(Act::Configure),
        8 => (1..40_usize).prop_map(Act::Interleave),
        4 => (0..90_u16).prop_map(Act::Advance),
        2 => Just(Act::CrashRunner),
        3 => Just(Act::CutShort),
        2 => (0..90_u16).prop_map(Act::LoseKeeper),
        1 => Just(Act::RebootHost),
        1 => Just(Act::CutOff),
        1 => Just(Act::Reconnect),
        1 => Just(Act::RestartController),
        1 => any::<bool>().prop_map(Act::Resolve),
    ]
}

fn program(container: usize, service: usize) -> String {
    format!("{}-{}", CONTAINERS[container], SERVICES[service])
}

fn seconds(seconds: u16) -> Duration {
    Duration::from_secs(seconds.into())
}

fn try_to(lab: &mut Lab, act: &Act) -> Result<(), LabError> {
    match act {
        Act::Kill(container, service) => {
            let (name, program) = (CONTAINERS[*container], program(*container, *service));
            lab.kill_program("a/0", name, &program).map(|_| ())
        }
        Act::EndPod(container) => lab.end_workload("a/0", CONTAINERS[*container]),
        Act::Live(container, service, life) => {
            lab.set_program(&program(*container, *service), *life);
            Ok(())
        }
        Act::Answer(container, answer) => {
            lab.answer_probes(&url(CONTAINERS[*container]), *answer);
            Ok(())
        }
        Act::Notify(container, key) => notify(lab, CONTAINERS[*container], &format!("k{key}")),
        Act::Fail(hook) => lab.script("a/0", FAILING[*hook], fails()),
        Act::Fix => {
            lab.unscript_all();
            Ok(())
        }
        Act::Configure(value) => lab.configure("a", &[("colour", &format!("c{value}"))]),
        Act::Interleave(steps) => lab.run_interleaved(*steps),
        Act::Advance(time) => lab.advance(seconds(*time)),
        Act::CrashRunner => lab.crash_runner("host"),
        Act::CutShort => {
            lab.start_hook("a/0")?;
            lab.crash_runner("host")
        }
        Act::LoseKeeper(time) => {
            lab.kill_agent("host")?;
            lab.advance(seconds(*time))?;
            lab.start_agent("host")
        }
        Act::RebootHost => lab.reboot_host("host"),
        Act::CutOff => lab.cut_off("host"),
        Act::Reconnect => lab.reconnect("host"),
        Act::RestartController => lab.restart_controller(),
        Act::Resolve(retry) => {
            let mode = if *retry { ResolveMode::Retry } else { ResolveMode::NoRetry };
            lab.resolve("a/0", mode)
        }
    }
}

/// Mends everything, lets the longest back-off pass, and changes the settings a last time.
fn calm(lab: &mut Lab) -> Result<(), LabError> {
    lab.set_fault_rates(FaultRates::default());
    for (container, name) in CONTAINERS.into_iter().enumerate() {
        lab.answer_probes(&url(name), ProbeAnswer::Well);
        (0..SERVICES.len())
            .for_each(|service| lab.set_program(&program(container, service), ProcessLife::Serves));
    }
    lab.unscript_all();
    lab.start_agent("host")?;
    lab.reconnect("host")?;
    lab.run_until_idle()?;
    lab.advance(Duration::from_secs(600))?;
    lab.configure("a", &[("colour", "last")])?;
    lab.advance(Duration::from_secs(120))
}

/// Lives a life to its calm end. At each moment a service has one process at most.
fn live(seed: u64, lost_answers: u16, acts: &[Act]) -> Result<Lab, TestCaseError> {
    let fail = |error: LabError| TestCaseError::fail(error.to_string());
    let mut lab = Lab::new(seed).map_err(fail)?;
    deploy(&mut lab).map_err(fail)?;
    lab.set_fault_rates(FaultRates { lost_answers, late_claims: 0 });
    for act in acts {
        match try_to(&mut lab, act) {
            Ok(()) | Err(LabError::Refused(_) | LabError::Unknown { .. }) => {}
            Err(error) => return Err(TestCaseError::fail(format!("{act:?}: {error}"))),
        }
        for container in CONTAINERS {
            let programs: Vec<_> = running(&lab, container).into_iter().map(|(program, _)| program).collect();
            let different: BTreeSet<_> = programs.iter().collect();
            prop_assert_eq!(different.len(), programs.len(), "after {:?}: {:?}", act, programs);
        }
    }
    calm(&mut lab).map_err(fail)?;
    Ok(lab)
}

fn is_told(traced: &Traced) -> bool {
    matches!(traced.state, HookRunState::Committed | HookRunState::PassedOver)
}

/// Checks that each start of a container was told once, and the present one, too.
fn check_starts(lab: &Lab, container: &str) -> Result<(), TestCaseError> {
    let mut told = BTreeSet::new();
    let mut is_repeated = false;
    let is_about =
        |event: &Event| matches!(event, Event::PebbleReady { container: of } if of.as_str() == container);
    for traced in lab.trace().iter().filter(|traced| is_about(&traced.event)) {
        if is_told(traced) {
            let is_new = told.insert(traced.boot_id.clone());
            // A hook that is tried again after its container has ended tells of no other start.
            prop_assert!(is_new || is_repeated, "told twice: {:?}", traced);
        }
        is_repeated = !traced.is_concluded();
    }
    let present = lab.boot_id("a/0", container).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(told.contains(&Some(present.to_owned())), "{} of {} is not told", present, container);
    Ok(())
}

/// Checks that the charm was told of each notice of the present start after its last occurrence, and of no number
/// twice.
fn check_notices(lab: &Lab, container: &str) -> Result<(), TestCaseError> {
    let present = lab.boot_id("a/0", container).ok();
    let mut told = Vec::new();
    for traced in lab.trace().iter().filter(|traced| is_told(traced)) {
        let Some(origin) = traced.event.notice() else { continue };
        if origin.container.as_str() == container && present == Some(origin.boot_id.as_str()) {
            told.push((origin.number, traced.event.clone()));
        }
    }
    prop_assert!(told.is_sorted_by(|(one, _), (other, _)| one < other), "{:?}", told);
    let made = lab.notices("a/0", container).map_err(|error| TestCaseError::fail(error.to_string()))?;
    for (number, notice) in made {
        let event = told.iter().find(|(of, _)| *of == number).map(|(_, event)| event);
        let origin = event.and_then(Event::notice).cloned();
        let expected = origin.map(|origin| Event::of_notice(&notice, origin));
        prop_assert!(event.is_some() && event == expected.as_ref(), "{} {:?}: {:?}", number, notice, told);
    }
    Ok(())
}

/// Checks that each hook that failed or was cut short has run again, or was about a start that has ended.
fn check_repetitions(lab: &Lab) -> Result<(), TestCaseError> {
    let trace = lab.trace();
    for (at, traced) in trace.iter().enumerate() {
        if !matches!(traced.state, HookRunState::Lost | HookRunState::Failed) {
            continue;
        }
        let has_ended = traced.event.notice().is_some_and(|origin| {
            lab.boot_id("a/0", origin.container.as_str()).ok() != Some(origin.boot_id.as_str())
        });
        let mut later = trace[at + 1..].iter();
        let again = later.any(|later| later.is_concluded() && later.event.is_attempt_of(&traced.event));
        prop_assert!(again || has_ended, "it does not run again: {:?}", traced);
    }
    Ok(())
}

fn check(lab: &Lab) -> Result<(), TestCaseError> {
    let violations = invariants::order_violations(lab.trace());
    prop_assert!(violations.is_empty(), "{:?}", violations);
    check_repetitions(lab)?;
    for container in CONTAINERS {
        check_starts(lab, container)?;
        check_notices(lab, container)?;
        prop_assert_eq!(running(lab, container), all(container, "last"));
    }
    Ok(())
}

/// Shows that the lives below are not vacuous: some dozens of them have each kind of event, lost runs and failures.
#[test]
fn lives_of_pods_meet_every_kind_of_event_and_death() {
    let mut runner = TestRunner::deterministic();
    let lives = proptest::collection::vec(act(), 30..50);
    let (mut kinds, mut states) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..24 {
        let acts = lives.new_tree(&mut runner).unwrap().current();
        let lab = live(seed, 100, &acts).unwrap();
        for traced in lab.trace().iter().filter(|traced| traced.event.container().is_some()) {
            states.insert(format!("{:?}", traced.state));
            kinds.insert(traced.event.kind());
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    for state in ["Committed", "Failed", "Lost"] {
        assert!(states.contains(state), "{states:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn y10_whatever_happens_to_pods_charm_and_workloads_agree_at_the_end(
        seed: u64, lost_answers in 0..300_u16, acts in proptest::collection::vec(act(), 1..50)
    ) {
        check(&live(seed, lost_answers, &acts)?)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_life_of_pods(seed: u64, acts in proptest::collection::vec(act(), 1..15)) {
        let (one, other) = (live(seed, 100, &acts)?, live(seed, 100, &acts)?);
        prop_assert_eq!(one.trace(), other.trace());
        prop_assert_eq!(one.notices("a/0", "web").unwrap(), other.notices("a/0", "web").unwrap());
    }
}
