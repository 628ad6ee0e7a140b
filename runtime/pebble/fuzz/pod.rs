//! A pod on virtual time, whose clients and processes do what an input says, a line each.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use jiff::Timestamp;
use periapt_host_api::container::PodState;
use periapt_pebble::{
    CheckLevel, Exit, GoDuration, LogPushId, LogPushResult, NoticesQuery, PodAnswer, PodCaller, PodInput,
    PodOutput, PodRefusal, PodRequest, PodSettings, PodTime, ProbeId, ProcessId, RequestId, Signal,
    Supervisor, WebsocketName,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::limits;

/// The most lines of an input.
const LINES: usize = 200;

/// The longest time that passes in one line, in milliseconds.
const LONGEST: u64 = 60 * 1_000;

/// The most wakes of an input: pauses may be short, and much time may pass.
const WAKES: usize = 1_000;

/// The lines after which all that the pod keeps is listed.
const LISTED: usize = 10;

/// The most wakes in a row for which no time passes: what one wake causes may be due at once.
const WAKES_AT_ONCE: usize = 20;

/// The latest wake. A wait lasts 300 years at most, and a driver adds it to its clock.
const LATEST: Duration = Duration::from_secs(2_000 * 365 * 24 * 3_600);

const ROOT: PodCaller = PodCaller { user_id: Some(0), is_owner: true };

struct Pod {
    supervisor: Supervisor,
    now: Duration,
    caller: PodCaller,
    requests: u64,
    /// The requests without an answer.
    asked: BTreeSet<u64>,
    answers: BTreeMap<u64, Result<PodAnswer, PodRefusal>>,
    /// The processes that have not ended.
    running: BTreeSet<ProcessId>,
    /// The words for which the next process cannot be started.
    failure: Option<String>,
    probes: VecDeque<ProbeId>,
    pushes: VecDeque<LogPushId>,
    shutdowns: usize,
    wakes: usize,
}

/// Lets clients and processes do what bytes say, within bounds, and then ends the pod. Returns true if a process was started.
pub(crate) fn requests(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let settings =
        PodSettings { version: "v1".to_owned(), boot_id: "boot".to_owned(), seed: 7, limits: limits() };
    let mut pod = Pod {
        supervisor: Supervisor::new(settings),
        now: Duration::ZERO,
        caller: ROOT,
        requests: 0,
        asked: BTreeSet::new(),
        answers: BTreeMap::new(),
        running: BTreeSet::new(),
        failure: None,
        probes: VecDeque::new(),
        pushes: VecDeque::new(),
        shutdowns: 0,
        wakes: 0,
    };
    let mut is_started = false;
    for (number, line) in (1..).zip(text.lines().take(LINES)) {
        pod.act(line);
        is_started |= !pod.running.is_empty();
        pod.check();
        if number % LISTED == 0 {
            pod.check_lists();
        }
        if pod.shutdowns > 0 {
            return is_started;
        }
    }
    pod.check_lists();
    pod.input(PodInput::End(0));
    // The driver kills what does not end.
    for process in std::mem::take(&mut pod.running) {
        pod.input(PodInput::Exited(process, killed()));
    }
    while let Some(push) = pod.pushes.pop_front() {
        pod.input(PodInput::Pushed(push, LogPushResult::Taken));
    }
    assert_eq!((pod.shutdowns, pod.running.len()), (1, 0), "the pod has not ended");
    is_started
}

fn killed() -> Exit {
    Exit { code: 137, tail: String::new() }
}

impl Pod {
    /// Does what a line says. One that is not understood does nothing.
    fn act(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let place: usize = first.parse().unwrap_or_default();
        match word {
            "user" => self.caller = PodCaller { user_id: first.parse().ok(), is_owner: false },
            "root" => self.caller = ROOT,
            "pass" => {
                let milliseconds: u64 = first.parse().unwrap_or_default();
                self.pass(Duration::from_millis(milliseconds.min(LONGEST)));
            }
            "fail" => self.failure = Some(rest.to_owned()),
            "exit" => {
                if let Some(process) = self.running.iter().nth(place).copied() {
                    self.running.remove(&process);
                    let exit = Exit { code: more.parse().unwrap_or_default(), tail: more.to_owned() };
                    self.input(PodInput::Exited(process, exit));
                }
            }
            "write" => {
                if let Some(process) = self.running.iter().nth(place).copied() {
                    self.input(PodInput::Wrote(process, format!("{more}\n").into_bytes()));
                }
            }
            "probed" => {
                if let Some(probe) = self.probes.pop_front() {
                    let result = if rest.is_empty() { Ok(()) } else { Err(rest.to_owned()) };
                    self.input(PodInput::Probed(probe, result));
                }
            }
            "pushed" => {
                if let Some(push) = self.pushes.pop_front() {
                    let result = match first {
                        "" => LogPushResult::Taken,
                        "again" => LogPushResult::Failed(more.to_owned()),
                        _ => LogPushResult::Refused(rest.to_owned()),
                    };
                    self.input(PodInput::Pushed(push, result));
                }
            }
            "gone" => {
                if let Some(request) = self.asked.pop_first() {
                    self.input(PodInput::Gone(RequestId(request)));
                }
            }
            "end" => self.input(PodInput::End(first.parse().unwrap_or_default())),
            _ => {
                if let Some(request) = request(word, rest) {
                    self.ask(request);
                }
            }
        }
    }

    /// Sends a request, and returns its answer if there is one at once.
    fn ask(&mut self, request: PodRequest) -> Option<Result<PodAnswer, PodRefusal>> {
        self.requests += 1;
        let (id, caller) = (self.requests, self.caller);
        self.asked.insert(id);
        self.input(PodInput::Request { id: RequestId(id), caller, request });
        self.answers.remove(&id)
    }

    /// Takes an input, and what comes of it at once.
    fn input(&mut self, input: PodInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for output in self.step(input) {
                match output {
                    PodOutput::Respond(RequestId(id), answer) => {
                        assert!(self.asked.remove(&id), "request {id} is answered and did not wait");
                        check_answer(&answer);
                        self.answers.insert(id, answer);
                    }
                    PodOutput::Spawn(process, spawn) => {
                        assert!(!spawn.command.is_empty(), "a process without a command");
                        inputs.push_back(match self.failure.take() {
                            Some(words) => PodInput::SpawnFailed(process, words),
                            None => {
                                assert!(self.running.insert(process), "process {process} is started twice");
                                PodInput::Spawned(process)
                            }
                        });
                    }
                    PodOutput::Signal(process, Signal::KILL) => {
                        if self.running.remove(&process) {
                            inputs.push_back(PodInput::Exited(process, killed()));
                        }
                    }
                    PodOutput::Probe(probe, ..) => self.probes.push_back(probe),
                    PodOutput::Push(push, lines) => {
                        assert!(
                            lines.streams.iter().any(|stream| !stream.lines.is_empty()),
                            "a push of nothing"
                        );
                        self.pushes.push_back(push);
                    }
                    PodOutput::Shutdown(_) => self.shutdowns += 1,
                    PodOutput::Signal(..)
                    | PodOutput::Abandon(_)
                    | PodOutput::Forget(_)
                    | PodOutput::ServiceEnded(..)
                    | PodOutput::LogTarget(..)
                    | PodOutput::Notice(_) => {}
                }
            }
        }
        assert!(self.shutdowns <= 1, "the pod has ended twice");
    }

    fn step(&mut self, input: PodInput) -> Vec<PodOutput> {
        let seconds = 1_000_000_000 + i64::try_from(self.now.as_secs()).unwrap_or_default();
        let date = Timestamp::new(seconds, 0).unwrap_or_default();
        let before = self.counted_state();
        let outputs = self.supervisor.step(PodTime { since_start: self.now, date }, input);
        let after = self.counted_state();
        assert!(before.0 != after.0 || before.1 == after.1, "the keeper is not told of {:?}", after.1);
        outputs
    }

    /// Returns the state for the keeper with the number of its changes, without failures of checks, which are no change.
    fn counted_state(&self) -> (u64, PodState) {
        let mut state = self.supervisor.state();
        state.checks.iter_mut().for_each(|check| check.failures = 0);
        (self.supervisor.state_changes(), state)
    }

    /// Lets time pass, with each wake in its place.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut at_once = 0;
        while self.wakes < WAKES {
            let Some(at) = self.supervisor.next_wake().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            at_once = if at <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < WAKES_AT_ONCE, "time stands still");
            self.now = self.now.max(at);
            self.wakes += 1;
            self.input(PodInput::Tick);
            if self.shutdowns > 0 {
                return;
            }
        }
    }

    /// Checks that what waits and what runs is within its bounds.
    fn check(&self) {
        let limits = limits();
        assert!(self.asked.len() <= limits.waiters, "{} requests wait", self.asked.len());
        let most = limits.services + limits.checks + limits.execs;
        assert!(self.running.len() <= most, "{} processes run", self.running.len());
        let most = limits.log_targets;
        assert!(self.pushes.len() <= most, "{} pushes are on their way", self.pushes.len());
        let wake = self.supervisor.next_wake();
        assert!(wake.is_none_or(|at| at < LATEST), "{wake:?} is too late for a clock");
    }

    /// Checks that all that the pod keeps is within its bounds.
    fn check_lists(&mut self) {
        let limits = limits();
        let caller = std::mem::replace(&mut self.caller, ROOT);
        // Those of checks and of commands come on top, while they are in progress.
        let changes = limits.changes + 2 * (limits.checks + limits.execs) + 1;
        let query = NoticesQuery { all_users: true, ..NoticesQuery::default() };
        for (request, most) in [
            (PodRequest::Changes { select: "all".to_owned(), service: None }, changes),
            (PodRequest::Notices(Box::new(query)), limits.notices),
            (PodRequest::Identities, limits.identities),
            (PodRequest::Warnings { all: true }, limits.warnings),
            (PodRequest::Services { names: Vec::new() }, limits.services),
            (PodRequest::Checks { level: None, names: Vec::new() }, limits.checks),
        ] {
            let answer = self.ask(request.clone());
            let length = match &answer {
                Some(Ok(PodAnswer::Sync(Value::Array(all)))) => all.len(),
                Some(Ok(PodAnswer::Sync(Value::Object(all)))) => all.len(),
                _ => usize::MAX,
            };
            assert!(length <= most, "{request:?}: {answer:?}");
        }
        self.caller = caller;
    }
}

fn check_answer(answer: &Result<PodAnswer, PodRefusal>) {
    let limits = limits();
    match answer {
        Err(refusal) => {
            assert!((400..600).contains(&refusal.status) && !refusal.message.is_empty(), "{refusal:?}");
        }
        Ok(PodAnswer::Logs(lines, _)) => {
            let bytes: usize = lines.iter().map(|line| line.message.len()).sum();
            let longest = lines.iter().map(|line| line.message.len()).max().unwrap_or_default();
            // A byte that is no text is shown by three.
            assert!(longest <= 3 * limits.log_line, "a line of {longest} bytes");
            assert!(bytes <= limits.services * limits.log_ring, "{bytes} bytes of output");
        }
        Ok(_) => {}
    }
}

/// Reads a request. Bodies are JSON, as a client sends them.
fn request(word: &str, rest: &str) -> Option<PodRequest> {
    let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
    let names = |text: &str| -> Vec<String> {
        text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let duration = |text: &str| text.parse::<GoDuration>().ok().map(|duration| duration.0);
    Some(match word {
        "authorize" => PodRequest::Authorize,
        "system-info" => PodRequest::SystemInfo,
        "health" => PodRequest::Health { level: CheckLevel::from_word(first), names: names(more) },
        "plan" => PodRequest::Plan,
        "add-layer" => PodRequest::AddLayer(body(rest)?),
        "services" => PodRequest::Services { names: names(rest) },
        "act-on-services" => PodRequest::ActOnServices(body(rest)?),
        "signal" => PodRequest::Signal(body(rest)?),
        "changes" => {
            let service = (!more.is_empty()).then(|| more.to_owned());
            PodRequest::Changes { select: first.to_owned(), service }
        }
        "change" => PodRequest::Change(first.to_owned()),
        "wait" => PodRequest::WaitChange(first.to_owned(), duration(more)),
        "abort" => PodRequest::AbortChange(first.to_owned()),
        "exec" => PodRequest::Exec(Box::new(body(rest)?)),
        "websocket" => PodRequest::Websocket(first.to_owned(), WebsocketName::from_word(more)?),
        "checks" => PodRequest::Checks { level: CheckLevel::from_word(first), names: names(more) },
        "act-on-checks" => PodRequest::ActOnChecks(body(rest)?),
        "notices" => {
            let (user_id, keys) = (first.parse().ok(), names(more));
            PodRequest::Notices(Box::new(NoticesQuery { user_id, keys, ..NoticesQuery::default() }))
        }
        "await-notices" => {
            let (timeout, types) = (duration(first), names(more));
            PodRequest::Notices(Box::new(NoticesQuery { timeout, types, ..NoticesQuery::default() }))
        }
        "notify" => PodRequest::Notify(body(rest)?),
        "notice" => PodRequest::Notice(first.to_owned()),
        "metrics" => PodRequest::Metrics,
        "identities" => PodRequest::Identities,
        "act-on-identities" => PodRequest::ActOnIdentities(body(rest)?),
        "warnings" => PodRequest::Warnings { all: first == "all" },
        "okay" => PodRequest::Okay(first.parse().ok()?),
        "logs" => {
            let (services, newest) = (names(first), more.parse().ok());
            PodRequest::Logs { services, newest, from: 0 }
        }
        _ => return None,
    })
}

fn body<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
