//! Properties of any sequence of inputs: bounds, ends of changes, and the same outputs for the same inputs.

use proptest::prelude::*;

use super::*;
use crate::message::{ChecksAction, ChecksBody};

/// An act of a client or of a process.
#[derive(Debug, Clone)]
enum Act {
    Services(ServicesAction, bool, bool),
    Exit(usize, i32),
    Write(usize, Vec<u8>),
    Probe(bool),
    Exec,
    Connect(u64, WebsocketName),
    Abort(u64),
    Wait(u64, u64),
    Checks(ChecksAction),
    Layer(u8),
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let action = prop_oneof![
        Just(ServicesAction::Start),
        Just(ServicesAction::Stop),
        Just(ServicesAction::Restart),
        Just(ServicesAction::Replan),
        Just(ServicesAction::Autostart)
    ];
    let websocket =
        prop_oneof![Just(WebsocketName::Control), Just(WebsocketName::Stdio), Just(WebsocketName::Stderr)];
    prop_oneof![
        3 => (action, any::<bool>(), any::<bool>()).prop_map(|(action, a, b)| Act::Services(action, a, b)),
        3 => (0..4usize, 0..3i32).prop_map(|(place, code)| Act::Exit(place, code)),
        1 => (0..4usize, proptest::collection::vec(any::<u8>(), 0..50)).prop_map(|(place, bytes)| Act::Write(place, bytes)),
        2 => any::<bool>().prop_map(Act::Probe),
        1 => Just(Act::Exec),
        2 => (0..20u64, websocket).prop_map(|(task, name)| Act::Connect(task, name)),
        1 => (0..20u64).prop_map(Act::Abort),
        1 => (0..20u64, 0..5_000u64).prop_map(|(change, time)| Act::Wait(change, time)),
        1 => prop_oneof![Just(ChecksAction::Start), Just(ChecksAction::Stop)].prop_map(Act::Checks),
        1 => (0..4u8).prop_map(Act::Layer),
        5 => (0..8_000u64).prop_map(Act::Pass),
    ]
}

fn run(acts: &[Act]) -> Pod {
    let limits =
        PodLimits { changes: 10, notices: 20, execs: 3, waiters: 5, log_ring: 500, ..PodLimits::default() };
    let options = PodSettings { version: String::new(), boot_id: String::new(), seed: 3, limits };
    let mut pod = Pod::with(
        options,
        "services:\n  \
         a: {override: replace, command: a, startup: enabled, after: [b], on-check-failure: {c: restart}}\n  \
         b: {override: replace, command: b, kill-delay: 1s, backoff-delay: 0s}\n\
         checks:\n  \
         c: {override: replace, period: 700ms, threshold: 2, http: {url: 'http://x/'}}\n  \
         d: {override: replace, period: 900ms, timeout: 100ms, exec: {command: d}}",
    );
    for act in acts {
        let place = |pod: &Pod, place: usize| pod.running.keys().nth(place).copied();
        match act.clone() {
            Act::Services(action, a, b) => {
                let services =
                    [("a", a), ("b", b)].into_iter().filter(|it| it.1).map(|it| it.0.to_owned()).collect();
                pod.send(ROOT, PodRequest::ActOnServices(ServicesBody { action, services }));
            }
            Act::Exit(at, code) => {
                if let Some(process) = place(&pod, at) {
                    pod.running.remove(&process);
                    pod.input(PodInput::Exited(process, Exit { code, tail: String::new() }));
                }
            }
            Act::Write(at, bytes) => {
                if let Some(process) = place(&pod, at) {
                    pod.input(PodInput::Wrote(process, bytes));
                }
            }
            Act::Probe(is_well) => pod.answer_probes(if is_well { Ok(()) } else { Err("no") }),
            Act::Exec => {
                pod.send(ROOT, exec(Some(2)));
            }
            Act::Connect(task, name) => {
                pod.send(ROOT, PodRequest::Websocket(task.to_string(), name));
            }
            Act::Abort(change) => {
                pod.send(ROOT, PodRequest::AbortChange(change.to_string()));
            }
            Act::Wait(change, time) => {
                pod.send(ROOT, PodRequest::WaitChange(change.to_string(), Some(Duration::from_millis(time))));
            }
            Act::Checks(action) => {
                pod.send(
                    ROOT,
                    PodRequest::ActOnChecks(ChecksBody {
                        action,
                        checks: vec!["c".to_owned(), "d".to_owned()],
                    }),
                );
            }
            Act::Layer(value) => {
                pod.add(&format!(
                    "services: {{a: {{override: merge, environment: {{V: '{value}'}}}}}}\nchecks: {{c: {{override: merge, threshold: {}}}}}",
                    value + 1
                ))
                .unwrap();
            }
            Act::Pass(time) => pod.pass(Duration::from_millis(time)),
        }
        let supervisor = &pod.supervisor;
        // One process for each service at most, and nothing without a bound. Commands whose time is over are killed.
        for name in ["a", "b"] {
            let of_name = pod.running.values().filter(|spawn| spawn.command[0] == name).count();
            assert!(of_name <= 1, "{of_name} processes of {name}");
        }
        assert!(supervisor.execs.len() <= 3 && supervisor.waiters.len() <= 5);
        assert!(supervisor.changes.all().count() <= 10 + 1 + 4, "{}", supervisor.changes.all().count());
        assert!(supervisor.notices.len() <= 20);
        for change in supervisor.changes.all() {
            assert_eq!(change.ready.is_none(), supervisor.active.contains(&change.id));
            assert_eq!(change.ready.is_some(), change.status().is_ready(), "{change:?}");
        }
    }
    pod
}

proptest! {
    #[test]
    fn whatever_happens_a_pod_stays_small_and_its_changes_end(acts in proptest::collection::vec(act(), 0..80)) {
        let mut pod = run(&acts);
        // What was begun ends, if processes end when they are killed: no change but those of checks is left.
        for _ in 0..10 {
            pod.pass(Duration::from_secs(20));
            let killed: Vec<_> = pod.signals.drain(..).map(|(process, _)| process).collect();
            for process in killed {
                if pod.running.remove(&process).is_some() {
                    pod.input(PodInput::Exited(process, Exit { code: 137, tail: String::new() }));
                }
            }
        }
        let open: Vec<_> = pod.supervisor.changes.all().filter(|change| change.ready.is_none()).collect();
        prop_assert!(open.iter().all(|change| change.kind.as_str().ends_with("-check")), "{open:?}");
    }

    #[test]
    fn the_same_inputs_give_the_same_outputs(acts in proptest::collection::vec(act(), 0..40)) {
        let (one, other) = (run(&acts), run(&acts));
        prop_assert_eq!(one.answers, other.answers);
        prop_assert_eq!((one.signals, one.starts, one.others), (other.signals, other.starts, other.others));
    }
}
