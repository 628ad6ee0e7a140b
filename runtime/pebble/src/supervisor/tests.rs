use std::collections::BTreeMap;

use periapt_host_api::{
    container::{CheckStatus, PodState, ServiceCurrent},
    notice::WorkloadNotice,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    duration::GoDuration,
    message::{
        AddLayer, ChecksAction, ChecksBody, ExecBody, Exit, NoticeBody, NoticesQuery, PodAnswer, PodCaller,
        PodRefusal, PodRequest, Probe, ServicesAction, ServicesBody, SignalsBody, Spawn, WebsocketName,
    },
    plan::Service,
    signal::Signal,
};

const ROOT: PodCaller = PodCaller { user_id: Some(0), is_owner: true };

/// A pod on virtual time, whose processes start at once and end when a test says so.
struct Pod {
    supervisor: Supervisor,
    now: Duration,
    requests: u64,
    answers: BTreeMap<u64, Result<PodAnswer, PodRefusal>>,
    running: BTreeMap<ProcessId, Spawn>,
    signals: Vec<(ProcessId, Signal)>,
    probes: Vec<(ProbeId, Probe)>,
    others: Vec<PodOutput>,
    /// Words to the operator about services that ended.
    told: Vec<String>,
    /// The time of each start.
    starts: Vec<Duration>,
}

impl Pod {
    fn new(yaml: &str) -> Self {
        let options = PodSettings {
            version: "v1".to_owned(),
            boot_id: "boot".to_owned(),
            seed: 7,
            limits: PodLimits::default(),
        };
        Self::with(options, yaml)
    }

    fn with(options: PodSettings, yaml: &str) -> Self {
        let mut pod = Self {
            supervisor: Supervisor::new(options),
            now: Duration::ZERO,
            requests: 0,
            answers: BTreeMap::new(),
            running: BTreeMap::new(),
            signals: Vec::new(),
            probes: Vec::new(),
            others: Vec::new(),
            told: Vec::new(),
            starts: Vec::new(),
        };
        if !yaml.is_empty() {
            pod.add(yaml).unwrap();
        }
        pod
    }

    fn input(&mut self, input: PodInput) {
        let nanoseconds = 1_000_000_000_000_000 + i128::try_from(self.now.as_nanos()).unwrap();
        let date = Timestamp::from_nanosecond(nanoseconds).unwrap();
        let now = PodTime { since_start: self.now, date };
        let before = self.counted_state();
        let outputs = self.supervisor.step(now, input);
        let after = self.counted_state();
        assert!(before.0 != after.0 || before.1 == after.1, "the keeper is not told of {after:?}");
        for output in outputs {
            match output {
                PodOutput::Respond(RequestId(id), answer) => {
                    assert!(self.answers.insert(id, answer).is_none(), "a request is answered twice");
                }
                PodOutput::Spawn(process, spawn) => {
                    self.starts.push(self.now);
                    self.running.insert(process, *spawn);
                    self.input(PodInput::Spawned(process));
                }
                PodOutput::Signal(process, signal) => self.signals.push((process, signal)),
                PodOutput::Probe(id, probe, _) => self.probes.push((id, probe)),
                PodOutput::ServiceEnded(name, reason) => self.told.push(format!("{name}: {reason}")),
                other => self.others.push(other),
            }
        }
    }

    /// Returns the state for the operator, without failures of checks that are no change, with the number of its changes.
    fn counted_state(&self) -> (u64, PodState) {
        let mut state = self.supervisor.state();
        state.checks.iter_mut().for_each(|check| check.failures = 0);
        (self.supervisor.state_changes(), state)
    }

    fn send(&mut self, caller: PodCaller, request: PodRequest) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.input(PodInput::Request { id: RequestId(id), caller, request });
        id
    }

    fn ask(&mut self, request: PodRequest) -> Result<PodAnswer, PodRefusal> {
        let id = self.send(ROOT, request);
        self.answers.remove(&id).expect("an answer at once")
    }

    fn result(&mut self, request: PodRequest) -> Value {
        match self.ask(request).unwrap() {
            PodAnswer::Sync(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn add(&mut self, yaml: &str) -> Result<PodAnswer, PodRefusal> {
        let (action, label, format) = ("add".to_owned(), "l".to_owned(), "yaml".to_owned());
        self.ask(PodRequest::AddLayer(AddLayer {
            action,
            combine: true,
            label,
            format,
            layer: yaml.to_owned(),
        }))
    }

    fn act(&mut self, action: ServicesAction, services: &[&str]) -> String {
        let services = services.iter().map(|it| (*it).to_owned()).collect();
        match self.ask(PodRequest::ActOnServices(ServicesBody { action, services })).unwrap() {
            PodAnswer::Async(change, _) => change.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn change(&mut self, id: &str) -> Value {
        self.result(PodRequest::Change(id.to_owned()))
    }

    fn status(&mut self, id: &str) -> String {
        self.change(id)["status"].as_str().unwrap().to_owned()
    }

    /// Lets time pass, with each wake in its place.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut same = 0;
        while let Some(at) = self.supervisor.next_wake().filter(|at| *at <= end) {
            same = if at <= self.now { same + 1 } else { 0 };
            assert!(same < 20, "time stands still");
            self.now = self.now.max(at);
            self.input(PodInput::Tick);
        }
        self.now = end;
    }

    fn seconds(&mut self, seconds: f64) {
        self.pass(Duration::from_secs_f64(seconds));
    }

    /// Ends the process of a command.
    fn exit(&mut self, command: &str, code: i32) {
        let process = self.process(command);
        self.running.remove(&process);
        self.input(PodInput::Exited(process, Exit { code, tail: String::new() }));
    }

    fn process(&self, command: &str) -> ProcessId {
        let found = self.running.iter().find(|(_, spawn)| spawn.command[0] == command);
        *found.unwrap_or_else(|| panic!("{command} does not run")).0
    }

    fn commands(&self) -> Vec<&str> {
        self.running.values().map(|spawn| spawn.command[0].as_str()).collect()
    }

    fn current(&mut self, service: &str) -> String {
        let shown = self.result(PodRequest::Services { names: vec![service.to_owned()] });
        shown[0]["current"].as_str().unwrap().to_owned()
    }

    fn check(&mut self, name: &str) -> Value {
        self.result(PodRequest::Checks { level: None, names: vec![name.to_owned()] })[0].clone()
    }

    fn answer_probes(&mut self, result: Result<(), &str>) {
        for (id, _) in std::mem::take(&mut self.probes) {
            self.input(PodInput::Probed(id, result.map_err(str::to_owned)));
        }
    }
}

fn service(extra: &str) -> String {
    format!("services: {{a: {{override: replace, command: run, {extra}}}}}")
}

#[test]
fn a_service_counts_as_started_after_a_second() {
    let mut pod = Pod::new(&service("environment: {X: y}"));
    let change = pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(pod.running.values().next().unwrap().environment["X"], "y");
    pod.seconds(0.9);
    assert_eq!(pod.status(&change), "Doing");
    pod.seconds(0.2);
    let shown = pod.change(&change);
    assert_eq!((&shown["status"], &shown["ready"]), (&json!("Done"), &json!(true)));
    assert_eq!(shown["summary"], "Start service \"a\"");
    assert_eq!(pod.current("a"), "active");
    let again = pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(pod.status(&again), "Done");
    assert_eq!(pod.running.len(), 1);
}

#[test]
fn a_quick_exit_is_an_error_with_the_output() {
    let mut pod = Pod::new(&service(""));
    let change = pod.act(ServicesAction::Start, &["a"]);
    let process = pod.process("run");
    pod.input(PodInput::Wrote(process, b"no such\nport".to_vec()));
    pod.exit("run", 3);
    let shown = pod.change(&change);
    assert_eq!(shown["status"], "Error");
    let error = shown["err"].as_str().unwrap();
    assert!(
        error.contains("- Start service \"a\" (cannot start service: exited quickly with code 3)"),
        "{error}"
    );
    assert!(shown["tasks"][0]["log"][0].as_str().unwrap().contains("no such\n    port"), "{shown}");
    assert_eq!(pod.current("a"), "error");
    pod.seconds(100.0);
    assert!(pod.running.is_empty(), "it is not tried again");
}

#[test]
fn pauses_grow_to_a_limit_and_begin_anew_after_a_long_run() {
    let mut pod = Pod::new(&service("backoff-limit: 30s, backoff-delay: 1s"));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(1.5);
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let ended = pod.now;
        pod.exit("run", 1);
        assert_eq!(pod.current("a"), "backoff");
        pod.seconds(20.0);
        assert_eq!(pod.commands(), ["run"]);
        pauses.push((*pod.starts.last().unwrap() - ended).as_secs_f64());
    }
    for (pause, expected) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]) {
        assert!((expected..=expected * 1.1).contains(pause), "{pauses:?}");
    }
    pod.seconds(30.0);
    let ended = pod.now;
    pod.exit("run", 1);
    pod.seconds(1.2);
    let pause = (*pod.starts.last().unwrap() - ended).as_secs_f64();
    assert!((1.0..=1.1).contains(&pause), "{pause}");
}

#[test]
fn services_of_the_pods_own_run_from_its_start_and_layers_go_over_them() {
    let mut pod = Pod::new("");
    pod.input(PodInput::Begin([("web".to_owned(), "web".to_owned())].into()));
    assert_eq!(pod.commands(), ["web"]);
    let plan = pod.result(PodRequest::Plan);
    let plan = plan.as_str().unwrap();
    assert!(plan.contains("web:") && plan.contains("enabled"), "{plan}");
    // Even one that ends at once is started again, and the operator is told why.
    let process = pod.process("web");
    pod.input(PodInput::Wrote(process, b"no such\x1bfile\n".to_vec()));
    pod.exit("web", 1);
    assert_eq!(pod.told, [r#"web: it ended with code 1; its last output: "no such\u{1b}file""#]);
    assert_eq!(pod.current("web"), "backoff");
    pod.seconds(1.0);
    assert_eq!(pod.commands(), ["web"]);
    pod.seconds(2.0);
    pod.add("services: {web: {override: merge, environment: {X: y}}}").unwrap();
    let replan = pod.act(ServicesAction::Replan, &[]);
    pod.exit("web", 0);
    pod.seconds(2.0);
    assert_eq!(pod.status(&replan), "Done");
    assert_eq!(pod.running.values().next().unwrap().environment["X"], "y");
    assert_eq!(pod.told.len(), 1, "an end that was asked for is no news");
}

#[test]
fn a_stop_asks_then_kills_then_gives_up() {
    let mut pod = Pod::new(&service("kill-delay: 2s"));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    let process = pod.process("run");
    assert_eq!(pod.signals, [(process, Signal::TERM)]);
    pod.seconds(2.1);
    assert_eq!(pod.signals, [(process, Signal::TERM), (process, Signal::KILL)]);
    pod.seconds(5.1);
    assert!(pod.change(&stop)["err"].as_str().unwrap().contains("still runs after SIGTERM and SIGKILL"));
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    pod.exit("run", 137);
    assert_eq!(pod.status(&stop), "Done");
    assert_eq!(pod.current("a"), "inactive");
}

#[test]
fn a_stop_ends_a_pause_and_a_start_that_is_on_its_way() {
    let mut pod = Pod::new(&service(""));
    let start = pod.act(ServicesAction::Start, &["a"]);
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    assert_eq!(pod.status(&start), "Error");
    pod.exit("run", 143);
    assert_eq!(pod.status(&stop), "Done");
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    pod.exit("run", 1);
    assert_eq!(pod.current("a"), "backoff");
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    assert_eq!(pod.status(&stop), "Done");
    pod.seconds(60.0);
    assert!(pod.running.is_empty());
}

#[test]
fn services_start_in_their_order_and_wait_for_ever_behind_one_that_fails() {
    let mut pod = Pod::new(
        "services:\n  \
         a: {override: replace, command: a, startup: enabled, after: [b], requires: [b]}\n  \
         b: {override: replace, command: b}\n  \
         c: {override: replace, command: c, startup: enabled}",
    );
    let change = pod.act(ServicesAction::Autostart, &[]);
    assert_eq!(pod.commands(), ["b", "c"]);
    pod.seconds(1.1);
    assert_eq!(pod.commands(), ["b", "c", "a"]);
    pod.exit("a", 1);
    assert_eq!(pod.status(&change), "Error");
    let stop = pod.act(ServicesAction::Stop, &["b", "c"]);
    pod.exit("b", 0);
    pod.exit("c", 0);
    assert_eq!(pod.status(&stop), "Done");
    let change = pod.act(ServicesAction::Start, &["a"]);
    pod.exit("b", 1);
    let shown = pod.change(&change);
    let statuses: Vec<_> =
        shown["tasks"].as_array().unwrap().iter().map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!((statuses, &shown["ready"]), (vec!["Error", "Hold"], &json!(true)));
}

#[test]
fn a_service_stops_before_those_it_requires() {
    let mut pod = Pod::new(
        "services:\n  a: {override: replace, command: a, after: [b], requires: [b]}\n  b: {override: replace, command: b}",
    );
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(3.0);
    pod.act(ServicesAction::Stop, &["b"]);
    assert_eq!(pod.signals, [(pod.process("a"), Signal::TERM)]);
    pod.exit("a", 0);
    assert_eq!(pod.signals.last(), Some(&(pod.process("b"), Signal::TERM)));
}

#[test]
fn a_replan_restarts_what_has_changed_alone() {
    let mut pod = Pod::new(
        "services:\n  a: {override: replace, command: a, startup: enabled}\n  b: {override: replace, command: b, startup: enabled}",
    );
    pod.act(ServicesAction::Replan, &[]);
    pod.seconds(2.0);
    pod.add("services: {a: {override: merge, environment: {X: '1'}}}").unwrap();
    let change = pod.act(ServicesAction::Replan, &[]);
    assert_eq!(pod.signals, [(pod.process("a"), Signal::TERM)]);
    pod.exit("a", 0);
    pod.seconds(2.0);
    assert_eq!(pod.status(&change), "Done");
    assert_eq!(pod.running[&pod.process("a")].environment["X"], "1");
    // The same plan again, though with another word on how it is merged.
    pod.add("services: {a: {override: replace, command: a, startup: enabled, environment: {X: '1'}}}")
        .unwrap();
    let nothing = pod.act(ServicesAction::Replan, &[]);
    let shown = pod.change(&nothing);
    assert_eq!((&shown["status"], &shown["summary"]), (&json!("Done"), &json!("Replan - no services")));
}

#[test]
fn an_end_does_what_the_service_asks_for() {
    for (extra, code, ends) in [
        ("on-failure: ignore", 1, None),
        ("on-success: ignore", 0, None),
        ("on-success: shutdown", 0, Some(0)),
        ("on-failure: shutdown", 1, Some(10)),
        ("on-failure: success-shutdown", 1, Some(0)),
        ("on-success: failure-shutdown", 0, Some(10)),
    ] {
        let mut pod = Pod::new(&service(extra));
        pod.act(ServicesAction::Start, &["a"]);
        pod.seconds(2.0);
        pod.exit("run", code);
        pod.seconds(60.0);
        assert!(pod.running.is_empty(), "{extra}");
        assert_eq!(pod.others, ends.map(PodOutput::Shutdown).into_iter().collect::<Vec<_>>(), "{extra}");
        let refused = pod.ask(PodRequest::ActOnServices(ServicesBody {
            action: ServicesAction::Start,
            services: vec!["a".to_owned()],
        }));
        assert_eq!(refused.is_err_and(|refusal| refusal.status == 503), ends.is_some(), "{extra}");
    }
}

#[test]
fn a_pod_ends_once_its_services_have_stopped() {
    let mut pod = Pod::new(&service(""));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    pod.input(PodInput::End(0));
    assert_eq!((pod.others.as_slice(), pod.signals.len()), ([].as_slice(), 1));
    pod.exit("run", 0);
    assert_eq!(pod.others, [PodOutput::Shutdown(0)]);
}

const CHECKED: &str = "services: {a: {override: replace, command: run, on-check-failure: {c: restart}}}\n\
                       checks: {c: {override: replace, period: 1s, timeout: 500ms, threshold: 2, level: alive, http: {url: 'http://x/'}}}";

#[test]
fn a_check_that_fails_is_told_and_recovers() {
    let mut pod = Pod::new(CHECKED);
    pod.act(ServicesAction::Start, &["a"]);
    let perform = pod.check("c")["change-id"].as_str().unwrap().to_owned();
    pod.seconds(1.0);
    pod.answer_probes(Ok(()));
    assert_eq!(pod.check("c")["successes"], 1);
    pod.seconds(1.0);
    pod.answer_probes(Err("refused"));
    assert_eq!((&pod.check("c")["status"], &pod.check("c")["failures"]), (&json!("up"), &json!(1)));
    assert_eq!(pod.ask(PodRequest::Health { level: None, names: vec![] }), Ok(PodAnswer::Health(true)));
    // The second failure is an answer that does not come.
    pod.seconds(1.6);
    let down = pod.check("c");
    assert_eq!((&down["status"], &down["failures"]), (&json!("down"), &json!(2)));
    assert_eq!(pod.status(&perform), "Error");
    for (level, is_healthy) in [(None, false), (Some(crate::plan::CheckLevel::Ready), false)] {
        assert_eq!(pod.ask(PodRequest::Health { level, names: vec![] }), Ok(PodAnswer::Health(is_healthy)));
    }
    assert_eq!(pod.signals, [(pod.process("run"), Signal::TERM)]);
    pod.exit("run", 0);
    pod.seconds(0.6);
    assert_eq!(pod.commands(), ["run"], "it starts again after its pause");
    let recover = down["change-id"].as_str().unwrap().to_owned();
    assert_eq!(pod.status(&recover), "Doing");
    pod.probes.clear();
    pod.seconds(1.0);
    pod.answer_probes(Ok(()));
    assert_eq!(pod.status(&recover), "Done");
    let up = pod.check("c");
    assert_eq!((&up["status"], &up["failures"], &up["successes"]), (&json!("up"), &json!(0), &json!(1)));
    let notices = pod.result(PodRequest::Notices(Box::new(NoticesQuery {
        keys: vec![perform, recover],
        ..NoticesQuery::default()
    })));
    let data: Vec<_> = notices.as_array().unwrap().iter().map(|it| it["last-data"].clone()).collect();
    let of = |kind: &str| json!({ "kind": kind, "check-name": "c" });
    assert_eq!(data, [of("perform-check"), of("recover-check")]);
    let check = "c".to_owned();
    let told =
        [WorkloadNotice::CheckFailed { check: check.clone() }, WorkloadNotice::CheckRecovered { check }];
    assert_eq!(pod.others, told.map(PodOutput::Notice));
}

#[test]
fn the_state_of_services_and_checks_changes_with_them_and_not_with_each_failure() {
    let mut pod = Pod::new(
        "services: {a: {override: replace, command: run, startup: enabled}}\n\
         checks: {up: {override: replace, period: 10s, timeout: 9s, threshold: 2, http: {url: \"http://localhost/\"}}}",
    );
    let shown = |pod: &Pod| {
        let state = pod.supervisor.state();
        let (service, check) = (&state.services[0], &state.checks[0]);
        (service.current, service.restarts, check.status, check.failures)
    };
    assert_eq!(shown(&pod), (ServiceCurrent::Inactive, 0, CheckStatus::Up, 0));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    pod.exit("run", 1);
    assert_eq!(shown(&pod), (ServiceCurrent::Backoff, 0, CheckStatus::Up, 0));
    pod.seconds(2.0);
    assert_eq!(shown(&pod), (ServiceCurrent::Active, 1, CheckStatus::Up, 0));
    let fail = |pod: &mut Pod| {
        pod.seconds(10.0);
        let before = pod.supervisor.state_changes();
        pod.answer_probes(Err("refused"));
        pod.supervisor.state_changes() - before
    };
    let first = fail(&mut pod);
    assert_eq!((first, shown(&pod)), (0, (ServiceCurrent::Active, 1, CheckStatus::Up, 1)));
    let second = fail(&mut pod);
    assert_eq!((second, shown(&pod)), (1, (ServiceCurrent::Active, 1, CheckStatus::Down, 2)));
    let third = fail(&mut pod);
    assert_eq!((third, shown(&pod)), (0, (ServiceCurrent::Active, 1, CheckStatus::Down, 2)));
    pod.act(ServicesAction::Stop, &["a"]);
    pod.exit("run", 0);
    assert_eq!(shown(&pod).0, ServiceCurrent::Inactive);
}

#[test]
fn a_check_that_is_stopped_while_it_is_down_tells_nothing_more() {
    let mut pod = Pod::new(CHECKED);
    pod.seconds(1.0);
    pod.answer_probes(Err("refused"));
    pod.seconds(1.0);
    pod.answer_probes(Err("refused"));
    assert_eq!(pod.others.len(), 1, "{:?}", pod.others);
    let checks = vec!["c".to_owned()];
    pod.result(PodRequest::ActOnChecks(ChecksBody { action: ChecksAction::Stop, checks }));
    pod.seconds(5.0);
    assert_eq!(pod.others.len(), 1, "{:?}", pod.others);
}

#[test]
fn a_custom_notice_is_told_when_it_is_new_and_when_its_pause_is_over() {
    let mut pod = Pod::new("{}");
    let notify = |key: &str, pause: u64| {
        PodRequest::Notify(NoticeBody {
            action: "add".to_owned(),
            kind: "custom".to_owned(),
            key: key.to_owned(),
            repeat_after: Some(GoDuration(Duration::from_secs(pause))),
            data: BTreeMap::new(),
        })
    };
    for (key, pause) in [("a.b/c", 10), ("a.b/c", 10), ("a.b/d", 0), ("a.b/d", 0)] {
        pod.result(notify(key, pause));
        pod.seconds(1.0);
    }
    pod.seconds(7.0);
    pod.result(notify("a.b/c", 10));
    assert!(pod.ask(notify("no key", 0)).is_err());
    let custom = |id, key: &str| PodOutput::Notice(WorkloadNotice::Custom { id, key: key.to_owned() });
    assert_eq!(pod.others, [custom(1, "a.b/c"), custom(2, "a.b/d"), custom(2, "a.b/d"), custom(1, "a.b/c")]);
}

#[test]
fn a_late_answer_of_a_probe_counts_for_nothing() {
    let mut pod = Pod::new(CHECKED);
    pod.seconds(1.0);
    let late = std::mem::take(&mut pod.probes);
    pod.seconds(0.6);
    assert_eq!(pod.check("c")["failures"], 1);
    pod.input(PodInput::Probed(late[0].0, Ok(())));
    assert_eq!(pod.check("c")["failures"], 1);
}

#[test]
fn a_check_is_stopped_and_started() {
    let mut pod = Pod::new(CHECKED);
    let act = |pod: &mut Pod, action| {
        pod.result(PodRequest::ActOnChecks(ChecksBody { action, checks: vec!["c".to_owned()] }))["changed"]
            .clone()
    };
    let change = pod.check("c")["change-id"].as_str().unwrap().to_owned();
    assert_eq!(act(&mut pod, ChecksAction::Start), json!([]));
    assert_eq!(act(&mut pod, ChecksAction::Stop), json!(["c"]));
    assert_eq!(pod.status(&change), "Hold");
    assert_eq!((&pod.check("c")["status"], pod.check("c").get("change-id")), (&json!("inactive"), None));
    pod.seconds(10.0);
    assert!(pod.probes.is_empty());
    pod.act(ServicesAction::Replan, &[]);
    assert_eq!(pod.check("c")["status"], "up");
}

#[test]
fn the_process_of_a_check_that_takes_too_long_is_killed() {
    let mut pod =
        Pod::new("checks: {c: {override: replace, period: 1s, timeout: 200ms, exec: {command: ask}}}");
    pod.seconds(1.0);
    let process = pod.process("ask");
    pod.seconds(0.3);
    assert_eq!(pod.signals, [(process, Signal::KILL)]);
    assert_eq!(pod.check("c")["failures"], 1);
    pod.exit("ask", 137);
    assert_eq!(pod.check("c")["failures"], 1);
}

fn exec(timeout: Option<u64>) -> PodRequest {
    PodRequest::Exec(Box::new(ExecBody {
        command: vec!["do".to_owned()],
        timeout: timeout.map(|it| crate::duration::GoDuration(Duration::from_secs(it))),
        split_stderr: true,
        ..ExecBody::default()
    }))
}

fn begin(pod: &mut Pod, request: PodRequest) -> (String, String) {
    match pod.ask(request).unwrap() {
        PodAnswer::Async(change, result) => {
            (change.to_string(), result["task-id"].as_str().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

fn connect(pod: &mut Pod, task: &str) {
    for name in [WebsocketName::Stderr, WebsocketName::Control, WebsocketName::Stdio] {
        assert!(pod.running.is_empty());
        pod.ask(PodRequest::Websocket(task.to_owned(), name)).unwrap();
    }
    assert_eq!(pod.commands(), ["do"]);
}

#[test]
fn a_command_runs_once_its_websockets_are_there() {
    let mut pod = Pod::new("");
    let (change, task) = begin(&mut pod, exec(None));
    connect(&mut pod, &task);
    let again = pod.ask(PodRequest::Websocket(task, WebsocketName::Stdio));
    assert_eq!(again.unwrap_err().status, 404);
    pod.seconds(1_000.0);
    pod.exit("do", 42);
    let shown = pod.change(&change);
    assert_eq!((&shown["status"], &shown["tasks"][0]["data"]), (&json!("Done"), &json!({ "exit-code": 42 })));
}

#[test]
fn a_command_whose_client_does_not_connect_ends() {
    let mut pod = Pod::new("");
    let (change, task) = begin(&mut pod, exec(None));
    pod.ask(PodRequest::Websocket(task.clone(), WebsocketName::Control)).unwrap();
    pod.seconds(6.0);
    assert!(pod.change(&change)["err"].as_str().unwrap().contains("websocket connections: stdio, stderr"));
    assert_eq!(pod.others, [PodOutput::Forget(TaskId::read(&task).unwrap())]);
    assert!(pod.ask(PodRequest::Websocket(task, WebsocketName::Stdio)).is_err());
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_its_output_closed() {
    let mut pod = Pod::new("");
    let (change, task) = begin(&mut pod, exec(Some(3)));
    connect(&mut pod, &task);
    let process = pod.process("do");
    pod.seconds(3.1);
    assert_eq!(pod.signals, [(process, Signal::KILL)]);
    pod.seconds(10.1);
    assert_eq!(pod.others, [PodOutput::Abandon(process)]);
    pod.exit("do", 137);
    assert!(pod.change(&change)["err"].as_str().unwrap().contains("timed out after 3s"));
}

#[test]
fn a_change_can_be_aborted() {
    let mut pod = Pod::new(&service(""));
    let (change, task) = begin(&mut pod, exec(None));
    connect(&mut pod, &task);
    pod.result(PodRequest::AbortChange(change.clone()));
    pod.exit("do", 137);
    assert!(pod.change(&change)["err"].as_str().unwrap().contains("aborted"));
    assert!(pod.ask(PodRequest::AbortChange(change)).unwrap_err().message.contains("nothing pending"));
}

#[test]
fn a_wait_ends_with_the_change_or_with_its_time() {
    let mut pod = Pod::new(&service(""));
    let change = pod.act(ServicesAction::Start, &["a"]);
    let short = pod.send(ROOT, PodRequest::WaitChange(change.clone(), Some(Duration::from_millis(500))));
    let long = pod.send(ROOT, PodRequest::WaitChange(change.clone(), Some(Duration::from_secs(4))));
    let gone = pod.send(ROOT, PodRequest::WaitChange(change.clone(), None));
    pod.input(PodInput::Gone(RequestId(gone)));
    pod.seconds(0.6);
    assert_eq!(pod.answers.remove(&short).unwrap().unwrap_err().status, 504);
    pod.seconds(0.5);
    assert!(
        matches!(pod.answers.remove(&long), Some(Ok(PodAnswer::Sync(shown))) if shown["status"] == "Done")
    );
    assert!(pod.answers.is_empty());
    assert!(pod.ask(PodRequest::WaitChange(change, None)).is_ok());
}

#[test]
fn a_reader_waits_for_a_notice() {
    let mut pod = Pod::new(&service(""));
    let query = NoticesQuery {
        types: vec!["change-update".to_owned()],
        timeout: Some(Duration::from_secs(5)),
        ..NoticesQuery::default()
    };
    let id = pod.send(ROOT, PodRequest::Notices(Box::new(query.clone())));
    assert!(pod.answers.is_empty());
    pod.act(ServicesAction::Start, &["a"]);
    assert!(matches!(pod.answers.remove(&id), Some(Ok(PodAnswer::Sync(found))) if found[0]["key"] == "1"));
    let id =
        pod.send(ROOT, PodRequest::Notices(Box::new(NoticesQuery { keys: vec!["x".to_owned()], ..query })));
    pod.seconds(5.1);
    assert_eq!(pod.answers.remove(&id), Some(Ok(PodAnswer::Sync(json!([])))));
}

#[test]
fn callers_have_the_rights_of_their_user() {
    let mut pod = Pod::new(&service(""));
    let read = PodCaller { user_id: Some(1_000), is_owner: false };
    let open = PodCaller { user_id: None, is_owner: false };
    for (caller, request, is_allowed) in [
        (open, PodRequest::SystemInfo, true),
        (open, PodRequest::Health { level: None, names: vec![] }, true),
        (open, PodRequest::Plan, false),
        (read, PodRequest::Plan, true),
        (read, exec(None), false),
        (read, PodRequest::Authorize, false),
        (read, PodRequest::AbortChange("1".to_owned()), false),
        (ROOT, PodRequest::Authorize, true),
    ] {
        let id = pod.send(caller, request.clone());
        let answer = pod.answers.remove(&id).unwrap();
        assert_eq!(!answer.is_err_and(|refusal| refusal.status == 401), is_allowed, "{caller:?} {request:?}");
    }
}

#[test]
fn signals_go_to_services_that_run() {
    let mut pod = Pod::new(&service(""));
    let signal = |pod: &mut Pod, name: &str| {
        let body = SignalsBody { signal: name.to_owned(), services: vec!["a".to_owned()] };
        pod.ask(PodRequest::Signal(body)).map_err(|refusal| refusal.message)
    };
    assert!(signal(&mut pod, "SIGHUP").unwrap_err().contains("not running"));
    pod.act(ServicesAction::Start, &["a"]);
    signal(&mut pod, "SIGHUP").unwrap();
    assert_eq!(pod.signals, [(pod.process("run"), Signal::from_name("SIGHUP").unwrap())]);
    assert!(signal(&mut pod, "HUP").unwrap_err().contains("invalid signal name"));
}

#[test]
fn ready_changes_are_dropped_by_age_and_by_number() {
    let limits = PodLimits { changes: 5, ..PodLimits::default() };
    let options = PodSettings { version: String::new(), boot_id: String::new(), seed: 0, limits };
    let mut pod = Pod::with(options, &service(""));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    for _ in 0..20 {
        pod.act(ServicesAction::Start, &["a"]);
    }
    let all = |pod: &mut Pod| {
        pod.result(PodRequest::Changes { select: "all".to_owned(), service: None }).as_array().unwrap().len()
    };
    assert_eq!(all(&mut pod), 6);
    pod.seconds(8.0 * 86_400.0);
    pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(all(&mut pod), 1);
}

#[test]
fn the_tasks_of_all_changes_have_a_bound() {
    let limits = PodLimits { tasks: 10, ..PodLimits::default() };
    let options = PodSettings { version: String::new(), boot_id: String::new(), seed: 0, limits };
    let names: Vec<String> = (0..6).map(|it| format!("s{it}")).collect();
    let services: Vec<_> =
        names.iter().map(|it| format!("{it}: {{override: replace, command: {it}}}")).collect();
    let mut pod = Pod::with(options, &format!("services: {{{}}}", services.join(", ")));
    let body = || ServicesBody { action: ServicesAction::Start, services: names.clone() };
    for is_begun in [true, true, false] {
        let answer = pod.ask(PodRequest::ActOnServices(body()));
        assert_eq!(answer.is_ok(), is_begun, "{answer:?}");
    }
    pod.seconds(2.0);
    for _ in 0..5 {
        pod.ask(PodRequest::ActOnServices(body())).unwrap();
        let tasks: usize = pod.supervisor.changes.all().map(|change| change.tasks.len()).sum();
        assert!(tasks <= 12 + 6, "{tasks}");
    }
}

#[test]
fn pauses_are_never_shorter_than_their_delay_nor_longer_than_their_limit() {
    let service = Service::default();
    let pauses: Vec<_> = (0..10).map(|attempts| services::pause(&service, attempts).as_secs_f64()).collect();
    assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]);
    assert_eq!(services::pause(&service, u32::MAX), Duration::from_secs(30));
}

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
