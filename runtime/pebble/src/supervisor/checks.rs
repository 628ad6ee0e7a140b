//! Checks as they run.

use std::time::Duration;

use periapt_host_api::notice::WorkloadNotice;

use super::{Owner, Supervisor, services::account};
use crate::{
    change::{ChangeKind, NewTask, Work},
    message::{Account, ChangeId, PodOutput, Probe, ProbeId, ProcessId, Spawn, Stdio},
    plan::{Check, ProbeKind, split},
    signal::Signal,
};

/// A check of the plan.
#[derive(Debug, Clone)]
pub(super) struct CheckRun {
    pub(super) config: Check,
    pub(super) successes: u64,
    pub(super) failures: u64,
    /// All answers since the pod's start.
    pub(super) answers: CheckAnswers,
    pub(super) active: Option<Active>,
}

/// The answers to a check, whatever became of it between them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CheckAnswers {
    pub(super) successes: u64,
    pub(super) failures: u64,
}

/// A check that runs.
#[derive(Debug, Clone)]
pub(super) struct Active {
    pub(super) change: ChangeId,
    /// The threshold was reached, and no success came since.
    pub(super) is_down: bool,
    next: Duration,
    asked: Option<Asked>,
}

/// A question without an answer.
#[derive(Debug, Clone)]
struct Asked {
    probe: ProbeId,
    process: Option<ProcessId>,
    until: Duration,
}

impl CheckRun {
    pub(super) fn wake(&self) -> Option<Duration> {
        let active = self.active.as_ref()?;
        Some(active.asked.as_ref().map_or(active.next, |asked| asked.until))
    }
}

impl Supervisor {
    /// Starts, restarts and stops checks as the plan has it now.
    pub(super) fn follow_plan(&mut self) {
        let gone: Vec<String> = self
            .checks
            .keys()
            .filter(|name| !self.stack.plan().checks.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            self.stop_check(&name);
            self.checks.remove(&name);
        }
        let changed: Vec<(String, Check)> = self
            .stack
            .plan()
            .checks
            .iter()
            .filter(|(name, check)| self.checks.get(*name).is_none_or(|run| run.config != **check))
            .map(|(name, check)| (name.clone(), check.clone()))
            .collect();
        for (name, config) in changed {
            self.stop_check(&name);
            let is_enabled = config.is_enabled();
            let answers = self.checks.get(&name).map(|run| run.answers).unwrap_or_default();
            let run = CheckRun { config, successes: 0, failures: 0, answers, active: None };
            self.checks.insert(name.clone(), run);
            if is_enabled {
                self.start_check(&name);
            }
        }
    }

    /// Starts a check. Returns false if it runs already.
    pub(super) fn start_check(&mut self, name: &str) -> bool {
        let now = self.now.since_start;
        let Some(run) = self.checks.get_mut(name).filter(|run| run.active.is_none()) else { return false };
        (run.successes, run.failures) = (0, 0);
        let next = now.saturating_add(run.config.period());
        let change = self.check_change(ChangeKind::PerformCheck, name);
        if let Some(run) = self.checks.get_mut(name) {
            run.active = Some(Active { change, is_down: false, next, asked: None });
        }
        self.state_changed();
        true
    }

    /// Stops a check. Returns false if it does not run.
    pub(super) fn stop_check(&mut self, name: &str) -> bool {
        let Some(active) = self.checks.get_mut(name).and_then(|run| run.active.take()) else { return false };
        if let Some(process) = active.asked.and_then(|asked| asked.process) {
            self.processes.remove(&process);
            self.outputs.push(PodOutput::Signal(process, Signal::KILL));
        }
        self.state_changed();
        // Neither done nor failed: an observer would take either for news of the workload.
        self.hold_task(self.only_task(active.change));
        true
    }

    fn check_change(&mut self, kind: ChangeKind, name: &str) -> ChangeId {
        let probe = self.checks.get(name).and_then(|run| run.config.probe()).map_or("", ProbeKind::as_str);
        let verb = if kind == ChangeKind::PerformCheck { "Perform" } else { "Recover" };
        let summary = format!("{verb} {probe} check {name:?}");
        let task = NewTask {
            work: Work::Check(name.to_owned()),
            kind: kind.as_str(),
            summary: summary.clone(),
            after: vec![],
        };
        self.create_change(kind, summary, vec![task])
    }

    pub(super) fn tick_checks(&mut self) {
        let now = self.now.since_start;
        let due: Vec<String> = self
            .checks
            .iter()
            .filter(|(_, run)| run.wake().is_some_and(|at| at <= now))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            let asked = self.checks.get_mut(&name).and_then(|run| run.active.as_mut()?.asked.take());
            match asked {
                None => self.ask(&name),
                Some(asked) => {
                    if let Some(process) = asked.process {
                        self.processes.remove(&process);
                        self.outputs.push(PodOutput::Signal(process, Signal::KILL));
                    }
                    self.answered(&name, Err("timed out".to_owned()));
                }
            }
        }
    }

    fn ask(&mut self, name: &str) {
        let Some(config) = self.checks.get(name).map(|run| run.config.clone()) else { return };
        let (now, timeout) = (self.now.since_start, config.timeout());
        let probe = self.next_probe();
        let mut process = None;
        match config.probe() {
            Some(ProbeKind::Http(http)) => {
                let question = Probe::Http { url: http.url.clone(), headers: http.headers.clone() };
                self.outputs.push(PodOutput::Probe(probe, question, timeout));
            }
            Some(ProbeKind::Tcp(tcp)) => {
                let question = Probe::Tcp { host: tcp.host.clone(), port: tcp.port.unwrap_or(0) };
                self.outputs.push(PodOutput::Probe(probe, question, timeout));
            }
            Some(ProbeKind::Exec(exec)) => {
                let context = self.stack.plan().services.get(&exec.service_context);
                let mut environment = context.map(|it| it.environment.clone()).unwrap_or_default();
                environment.extend(exec.environment.clone());
                let named = |name: &String| (!name.is_empty()).then(|| name.clone());
                let own = Account {
                    user: named(&exec.user),
                    user_id: exec.user_id,
                    group: named(&exec.group),
                    group_id: exec.group_id,
                };
                let account = match context {
                    Some(service) if own.is_own() => account(service),
                    _ => own,
                };
                let working_dir = match exec.working_dir.is_empty() {
                    true => context.map_or(String::new(), |it| it.working_dir.clone()),
                    false => exec.working_dir.clone(),
                };
                let working_dir = if working_dir.is_empty() { "/".to_owned() } else { working_dir };
                // The plan was refused if a command could not be split.
                let Ok(command) = split(&exec.command) else { return };
                let spawn = Spawn { command, environment, working_dir, account, stdio: Stdio::Tail };
                process = Some(self.spawn(Owner::Check(name.to_owned()), spawn));
            }
            None => return,
        }
        if let Some(active) = self.checks.get_mut(name).and_then(|run| run.active.as_mut()) {
            active.asked = Some(Asked { probe, process, until: now.saturating_add(timeout) });
        }
    }

    /// Takes the answer of a probe. One that comes too late is of no question any more.
    pub(super) fn probed(&mut self, probe: ProbeId, result: Result<(), String>) {
        let is_asked = |run: &CheckRun| {
            run.active.as_ref().and_then(|it| it.asked.as_ref()).is_some_and(|asked| asked.probe == probe)
        };
        let Some(name) = self.checks.iter().find(|(_, run)| is_asked(run)).map(|(name, _)| name.clone())
        else {
            return;
        };
        self.answered(&name, result);
    }

    pub(super) fn check_process_ended(&mut self, name: &str, process: ProcessId, result: Result<(), String>) {
        let asked = self.checks.get(name).and_then(|run| run.active.as_ref()?.asked.as_ref());
        if asked.is_some_and(|asked| asked.process == Some(process)) {
            self.answered(name, result);
        }
    }

    fn answered(&mut self, name: &str, result: Result<(), String>) {
        let now = self.now.since_start;
        let Some(run) = self.checks.get_mut(name) else { return };
        let (period, threshold) = (run.config.period(), u64::from(run.config.threshold()));
        let Some(active) = run.active.as_mut() else { return };
        active.asked = None;
        // The next question comes a period after the last one was due; none are made up for.
        active.next = active.next.saturating_add(period).max(now);
        let (change, was_down) = (active.change, active.is_down);
        match result {
            Ok(()) => {
                run.successes = if was_down { 1 } else { run.successes.saturating_add(1) };
                run.failures = 0;
                run.answers.successes = run.answers.successes.saturating_add(1);
                active.is_down = false;
                let task = self.only_task(change);
                if was_down {
                    self.state_changed();
                    self.end_task(task, Ok(()));
                    self.outputs
                        .push(PodOutput::Notice(WorkloadNotice::CheckRecovered { check: name.to_owned() }));
                    self.drive(name, ChangeKind::PerformCheck);
                } else {
                    self.set_progress(task, 0, threshold);
                }
            }
            Err(error) => {
                run.failures = run.failures.saturating_add(1);
                run.answers.failures = run.answers.failures.saturating_add(1);
                let failures = run.failures;
                let fails_now = !was_down && failures >= threshold;
                active.is_down = was_down || fails_now;
                let task = self.only_task(change);
                self.set_progress(task, failures, threshold);
                if fails_now {
                    self.state_changed();
                    self.end_task(task, Err(error));
                    self.outputs
                        .push(PodOutput::Notice(WorkloadNotice::CheckFailed { check: name.to_owned() }));
                    self.drive(name, ChangeKind::RecoverCheck);
                    self.react_to_check(name);
                } else {
                    self.write_task(task, "ERROR", &error);
                }
            }
        }
    }

    /// Lets another change drive a check.
    fn drive(&mut self, name: &str, kind: ChangeKind) {
        let change = self.check_change(kind, name);
        if let Some(active) = self.checks.get_mut(name).and_then(|run| run.active.as_mut()) {
            active.change = change;
        }
    }
}
