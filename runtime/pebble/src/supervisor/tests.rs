//! Tests of the supervisor, with a pod on virtual time whose processes and probes the test plays.

mod changes;
mod checks;
mod execs;
mod forwards;
mod metrics;
mod notices;
mod properties;
mod rights;
mod services;

use std::collections::BTreeMap;

use periapt_host_api::container::PodState;
use serde_json::Value;

use super::*;
use crate::{
    duration::GoDuration,
    log_push::LogPush,
    message::{
        AddLayer, ExecBody, Exit, PodAnswer, PodCaller, PodRefusal, PodRequest, Probe, ServicesAction,
        ServicesBody, Spawn, WebsocketName,
    },
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
    pushes: Vec<(LogPushId, LogPush)>,
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
            pushes: Vec::new(),
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
                PodOutput::Push(id, push) => self.pushes.push((id, *push)),
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

fn exec(timeout: Option<u64>) -> PodRequest {
    PodRequest::Exec(Box::new(ExecBody {
        command: vec!["do".to_owned()],
        timeout: timeout.map(|it| GoDuration(Duration::from_secs(it))),
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
