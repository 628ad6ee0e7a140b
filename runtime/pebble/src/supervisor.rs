//! The supervisor: one state machine for all that a pod does.

mod checks;
mod execs;
mod forwards;
mod metrics;
mod notices;
mod read;
mod requests;
mod services;
mod state;
mod tasks;
mod waiters;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    change::Changes,
    identity::Identities,
    limits::PodLimits,
    log::Logs,
    message::{ChangeId, LogPushId, PodInput, PodOutput, PodTime, ProbeId, ProcessId, RequestId, TaskId},
    notice::Notices,
    plan::Stack,
    warning::Warnings,
};

use checks::CheckRun;
use execs::Exec;
use forwards::Forward;
use services::Run;
use waiters::Waiter;

/// The settings of a supervisor.
#[derive(Debug, Clone)]
pub struct PodSettings {
    /// The version that clients are told.
    pub version: String,
    /// The id of this start of the pod.
    pub boot_id: String,
    /// The seed of the jitter of pauses.
    pub seed: u64,
    /// The bounds.
    pub limits: PodLimits,
}

/// The state of a pod. A clone is independent from then on.
#[derive(Debug, Clone)]
pub struct Supervisor {
    options: PodSettings,
    now: PodTime,
    stack: Stack,
    changes: Changes,
    /// The changes that are not ready.
    active: BTreeSet<ChangeId>,
    notices: Notices,
    warnings: Warnings,
    identities: Identities,
    logs: Logs,
    services: BTreeMap<String, Run>,
    checks: BTreeMap<String, CheckRun>,
    execs: BTreeMap<TaskId, Exec>,
    forwards: BTreeMap<String, Forward>,
    processes: BTreeMap<ProcessId, Owner>,
    waiters: BTreeMap<RequestId, Waiter>,
    outputs: Vec<PodOutput>,
    last_process: u64,
    last_probe: u64,
    last_push: u64,
    random: u64,
    /// The number of changes of the shown state of services and checks.
    state_changes: u64,
    ending: Option<Ending>,
}

/// The owner of a process.
#[derive(Debug, Clone)]
enum Owner {
    Service(String),
    Check(String),
    Exec(TaskId),
}

/// The end of the pod.
#[derive(Debug, Clone, Copy)]
struct Ending {
    code: i32,
    is_told: bool,
    /// The time until which the last lines are sent to log targets, once no service runs.
    sends_until: Option<Duration>,
}

impl Supervisor {
    /// Creates the state of a pod that has just begun.
    #[must_use]
    pub fn new(options: PodSettings) -> Self {
        Self {
            random: options.seed | 1,
            options,
            now: PodTime { since_start: Duration::ZERO, date: Timestamp::UNIX_EPOCH },
            stack: Stack::default(),
            changes: Changes::default(),
            active: BTreeSet::new(),
            notices: Notices::default(),
            warnings: Warnings::default(),
            identities: Identities::default(),
            logs: Logs::default(),
            services: BTreeMap::new(),
            checks: BTreeMap::new(),
            execs: BTreeMap::new(),
            forwards: BTreeMap::new(),
            processes: BTreeMap::new(),
            waiters: BTreeMap::new(),
            outputs: Vec::new(),
            last_process: 0,
            last_probe: 0,
            last_push: 0,
            state_changes: 0,
            ending: None,
        }
    }

    /// Takes an input, and returns what is to be done, in this order.
    pub fn step(&mut self, now: PodTime, input: PodInput) -> Vec<PodOutput> {
        // A clock that goes back would only make pauses longer; it does not happen with a clock that counts.
        self.now = PodTime { since_start: now.since_start.max(self.now.since_start), date: now.date };
        match input {
            PodInput::Begin(services) => self.begin(services),
            PodInput::Tick => self.tick(),
            PodInput::Request { id, caller, request } => self.request(id, caller, request),
            PodInput::Gone(id) => {
                self.waiters.remove(&id);
            }
            PodInput::Spawned(process) => self.spawned(process),
            PodInput::SpawnFailed(process, message) => self.spawn_failed(process, &message),
            PodInput::Exited(process, exit) => self.exited(process, &exit),
            PodInput::Wrote(process, bytes) => self.wrote(process, &bytes),
            PodInput::Probed(probe, result) => self.probed(probe, result),
            PodInput::Pushed(push, result) => self.pushed(push, result),
            PodInput::End(code) => self.end(code),
        }
        self.run_tasks();
        self.tell_end();
        std::mem::take(&mut self.outputs)
    }

    /// Returns the time at which the supervisor wants [`PodInput::Tick`], counted as [`PodTime::since_start`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        let services = self.services.values().filter_map(Run::wake);
        let checks = self.checks.values().filter_map(CheckRun::wake);
        let execs = self.execs.values().filter_map(Exec::wake);
        let waiters = self.waiters.values().filter_map(Waiter::wake);
        let forwards = self.forwards.values().filter_map(Forward::wake);
        let ending = self.ending.filter(|ending| !ending.is_told).and_then(|ending| ending.sends_until);
        services.chain(checks).chain(execs).chain(waiters).chain(forwards).chain(ending).min()
    }

    /// Returns the number of the next line of output, for readers that wait for more.
    #[must_use]
    pub fn next_log_line(&self) -> u64 {
        self.logs.next()
    }

    fn tick(&mut self) {
        self.tick_services();
        self.tick_checks();
        self.tick_execs();
        self.tick_waiters();
        self.tick_forwards();
    }

    fn spawned(&mut self, process: ProcessId) {
        if let Some(Owner::Service(name)) = self.processes.get(&process).cloned() {
            self.service_spawned(&name, process);
        }
    }

    fn spawn_failed(&mut self, process: ProcessId, message: &str) {
        match self.processes.remove(&process) {
            Some(Owner::Service(name)) => self.service_spawn_failed(&name, process, message),
            Some(Owner::Check(name)) => self.check_process_ended(&name, process, Err(message.to_owned())),
            Some(Owner::Exec(task)) => self.exec_spawn_failed(task, message),
            None => {}
        }
    }

    fn exited(&mut self, process: ProcessId, exit: &crate::message::Exit) {
        match self.processes.remove(&process) {
            Some(Owner::Service(name)) => self.service_exited(&name, process, exit),
            Some(Owner::Check(name)) => {
                let tail = exit.tail.trim_end();
                let result = match exit.code {
                    0 => Ok(()),
                    code if tail.is_empty() => Err(format!("exit status {code}")),
                    code => Err(format!("exit status {code}; {tail}")),
                };
                self.check_process_ended(&name, process, result);
            }
            Some(Owner::Exec(task)) => self.exec_exited(task, exit),
            None => {}
        }
    }

    fn wrote(&mut self, process: ProcessId, bytes: &[u8]) {
        if let Some(Owner::Service(name)) = self.processes.get(&process).cloned() {
            let ended = self.logs.write(self.now.date, &name, bytes, &self.options.limits);
            self.lines_ended(&name, ended);
        }
    }

    /// Stops all services, and ends the pod once they have stopped.
    fn end(&mut self, code: i32) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Ending { code, is_told: false, sends_until: None });
        for name in self.checks.keys().cloned().collect::<Vec<_>>() {
            self.stop_check(&name);
        }
        for name in self.services.keys().cloned().collect::<Vec<_>>() {
            self.stop_service(&name, None);
        }
        for task in self.execs.keys().copied().collect::<Vec<_>>() {
            self.kill_exec(task, "the pod ends");
        }
    }

    fn tell_end(&mut self) {
        let Some(ending) = self.ending.filter(|ending| !ending.is_told) else { return };
        if self.services.values().any(Run::has_process) {
            return;
        }
        let until = ending.sends_until.unwrap_or(self.now.since_start.saturating_add(forwards::END_TIME));
        let is_told = self.has_sent_lines() || self.now.since_start >= until;
        self.ending = Some(Ending { is_told, sends_until: Some(until), ..ending });
        if is_told {
            self.outputs.push(PodOutput::Shutdown(ending.code));
        }
    }

    /// Asks for a process.
    fn spawn(&mut self, owner: Owner, spawn: crate::message::Spawn) -> ProcessId {
        self.last_process += 1;
        let process = ProcessId(self.last_process);
        self.processes.insert(process, owner);
        self.outputs.push(PodOutput::Spawn(process, Box::new(spawn)));
        process
    }

    fn next_probe(&mut self) -> ProbeId {
        self.last_probe += 1;
        ProbeId(self.last_probe)
    }

    fn next_push(&mut self) -> LogPushId {
        self.last_push += 1;
        LogPushId(self.last_push)
    }

    /// Lengthens a pause by up to a tenth, so that services that failed together do not all start together.
    fn with_jitter(&mut self, pause: Duration) -> Duration {
        // Xorshift: the same seed gives the same pauses.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = u32::try_from(self.random % 1_000).unwrap_or(0);
        pause.saturating_add((pause / 10_000).saturating_mul(share))
    }
}

#[cfg(test)]
mod tests;
