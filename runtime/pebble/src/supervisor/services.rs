//! Services as they run.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{Ending, Owner, Supervisor};
use crate::{
    message::{Account, Exit, PodOutput, ProcessId, Spawn, Stdio, TaskId},
    plan::{Action, Adding, Layer, Service, split},
    signal::Signal,
};

/// The label of the layer with the pod's own services.
const OWN_LAYER: &str = "workloads";

/// The time for which a service must run before it counts as started.
const OKAY_DELAY: Duration = Duration::from_secs(1);

/// The time after SIGKILL at which a stop has failed: the kernel does not end the process.
const GIVE_UP_DELAY: Duration = Duration::from_secs(5);

/// The lines of output in the log of a task that has failed.
const SHOWN_LINES: usize = 20;

/// The lines of output that the operator is told of a service that has ended.
const TOLD_LINES: usize = 3;

/// The exit code of a pod that ends because a service has failed.
const FAILED_SERVICE: i32 = 10;

/// The exit code of a pod that ends because a check has failed.
const FAILED_CHECK: i32 = 11;

/// A service that was started at least once.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// The service as it stood in the plan when it was started.
    pub(super) config: Service,
    state: State,
    /// The restarts since the pause was the first one.
    attempts: u32,
    /// The restarts after an end that nobody asked for.
    pub(super) restarts: u32,
    /// The processes that were started.
    pub(super) starts: u64,
    /// The date of the last change between running and not running.
    pub(super) changed: Timestamp,
    /// The reason why the last start made no process.
    pub(super) cannot_start: Option<String>,
}

#[derive(Debug, Clone)]
enum State {
    /// No process. `failed` if the last one ended with an error.
    Stopped { failed: bool },
    /// A process that does not count as started yet; none of `tasks` if it is a restart.
    Starting { process: ProcessId, since: Duration, okay_at: Option<Duration>, tasks: Vec<TaskId> },
    /// A process.
    Running { process: ProcessId, since: Duration },
    /// A process that was told to end.
    Stopping { process: ProcessId, next: Option<Duration>, is_killed: bool, then: Then, tasks: Vec<TaskId> },
    /// No process until the pause is over.
    Backoff { until: Duration },
}

/// The sequel of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The service stays stopped.
    Stop,
    /// It starts again after a pause.
    Restart,
}

impl Run {
    pub(super) fn wake(&self) -> Option<Duration> {
        match &self.state {
            State::Starting { okay_at, .. } => *okay_at,
            State::Stopping { next, .. } => *next,
            State::Backoff { until } => Some(*until),
            State::Stopped { .. } | State::Running { .. } => None,
        }
    }

    /// Returns true if there is a process.
    pub(super) fn has_process(&self) -> bool {
        !matches!(self.state, State::Stopped { .. } | State::Backoff { .. })
    }

    /// Returns true unless the service is at rest.
    pub(super) fn is_active(&self) -> bool {
        !matches!(self.state, State::Stopped { .. })
    }

    /// Returns the state as the API names it.
    pub(super) fn current(&self) -> &'static str {
        match self.state {
            State::Stopped { failed: false } => "inactive",
            State::Stopped { failed: true } => "error",
            State::Starting { .. } | State::Running { .. } | State::Stopping { .. } => "active",
            State::Backoff { .. } => "backoff",
        }
    }

    /// Returns the process of a service that runs.
    pub(super) fn process(&self) -> Option<ProcessId> {
        match self.state {
            State::Starting { process, .. } | State::Running { process, .. } => Some(process),
            State::Stopping { .. } | State::Stopped { .. } | State::Backoff { .. } => None,
        }
    }
}

/// Returns the account of a service.
pub(super) fn account(service: &Service) -> Account {
    let named = |name: &String| (!name.is_empty()).then(|| name.clone());
    Account {
        user: named(&service.user),
        user_id: service.user_id,
        group: named(&service.group),
        group_id: service.group_id,
    }
}

impl Supervisor {
    /// Starts the pod's own services.
    pub(super) fn begin(&mut self, services: BTreeMap<String, String>) {
        let names: Vec<String> = services.keys().cloned().collect();
        let layer = Layer::of_services(services);
        let limits = &self.options.limits;
        if let Err(error) = self.stack.add(OWN_LAYER, layer, Adding::OnTop, limits) {
            let message = format!("the pod's own services cannot be run: {error}");
            return self.warnings.add(self.now.date, &message, limits);
        }
        // No task waits for them, so that one that ends at once pauses and starts again.
        for name in names {
            self.spawn_service(&name, Vec::new());
        }
    }

    /// Starts a service for a task.
    pub(super) fn start_service(&mut self, name: &str, task: TaskId) {
        if self.ending.is_some() {
            return self.end_task(task, Err("cannot start service: the pod ends".to_owned()));
        }
        match self.services.get_mut(name).map(|run| &mut run.state) {
            Some(State::Running { .. }) => self.end_task(task, Ok(())),
            Some(State::Starting { tasks, .. }) => tasks.push(task),
            Some(State::Stopping { .. }) => {
                self.end_task(task, Err("cannot start service while terminating".to_owned()));
            }
            Some(State::Stopped { .. } | State::Backoff { .. }) | None => {
                if let Some(run) = self.services.get_mut(name) {
                    run.attempts = 0;
                }
                self.spawn_service(name, vec![task]);
            }
        }
    }

    fn spawn_service(&mut self, name: &str, tasks: Vec<TaskId>) {
        let Some(config) = self.stack.plan().services.get(name).cloned() else {
            return self.fail(tasks, "cannot start service: it is not in the plan");
        };
        // The plan was refused if a command could not be split.
        let Ok(command) = split(&config.command) else {
            return self.fail(tasks, "cannot start service: its command cannot be split");
        };
        let process = self.spawn(
            Owner::Service(name.to_owned()),
            Spawn {
                command,
                environment: config.environment.clone(),
                working_dir: match config.working_dir.is_empty() {
                    true => "/".to_owned(),
                    false => config.working_dir.clone(),
                },
                account: account(&config),
                stdio: Stdio::Log,
            },
        );
        let state = State::Starting { process, since: self.now.since_start, okay_at: None, tasks };
        let earlier = self.services.get(name);
        let (attempts, restarts) = earlier.map_or((0, 0), |run| (run.attempts, run.restarts));
        let (starts, changed) = (earlier.map_or(0, |run| run.starts), self.now.date);
        let run = Run { config, state, attempts, restarts, starts, changed, cannot_start: None };
        self.services.insert(name.to_owned(), run);
        self.state_changed();
    }

    fn fail(&mut self, tasks: Vec<TaskId>, message: &str) {
        for task in tasks {
            self.end_task(task, Err(message.to_owned()));
        }
    }

    pub(super) fn service_spawned(&mut self, name: &str, of: ProcessId) {
        let now = self.now.since_start;
        if let Some(run) = self.services.get_mut(name)
            && let State::Starting { process, since, okay_at, .. } = &mut run.state
            && *process == of
        {
            (*since, *okay_at) = (now, Some(now.saturating_add(OKAY_DELAY)));
            run.starts = run.starts.saturating_add(1);
        }
    }

    pub(super) fn service_spawn_failed(&mut self, name: &str, of: ProcessId, message: &str) {
        let Some(state) = self.ended(name, of) else { return };
        if let Some(run) = self.services.get_mut(name) {
            run.cannot_start = Some(message.to_owned());
        }
        match state {
            State::Starting { tasks, .. } if tasks.is_empty() => {
                self.outputs.push(PodOutput::ServiceEnded(name.to_owned(), message.to_owned()));
                self.back_off(name);
            }
            State::Starting { tasks, .. } => {
                self.set_state(name, State::Stopped { failed: true });
                self.fail(tasks, &format!("cannot start service: {message}"));
            }
            State::Stopping { tasks, .. } => {
                self.set_state(name, State::Stopped { failed: true });
                tasks.into_iter().for_each(|task| self.end_task(task, Ok(())));
            }
            State::Stopped { .. } | State::Running { .. } | State::Backoff { .. } => {}
        }
    }

    /// Takes the state of a service whose process `of` has ended; none if it is another process.
    fn ended(&mut self, name: &str, of: ProcessId) -> Option<State> {
        let run = self.services.get_mut(name)?;
        let (State::Starting { process, .. }
        | State::Running { process, .. }
        | State::Stopping { process, .. }) = &run.state
        else {
            return None;
        };
        if *process != of {
            return None;
        }
        let ended = std::mem::replace(&mut run.state, State::Stopped { failed: false });
        self.state_changed();
        Some(ended)
    }

    fn set_state(&mut self, name: &str, state: State) {
        let date = self.now.date;
        if let Some(run) = self.services.get_mut(name) {
            run.state = state;
            run.changed = date;
        }
        self.state_changed();
    }

    pub(super) fn service_exited(&mut self, name: &str, of: ProcessId, exit: &Exit) {
        let ended = self.logs.flush(self.now.date, name, &self.options.limits);
        self.lines_ended(name, ended);
        let Some(state) = self.ended(name, of) else { return };
        self.set_state(name, State::Stopped { failed: exit.code != 0 });
        match state {
            State::Starting { tasks, .. } if !tasks.is_empty() => {
                let output = self.logs.tail(name, SHOWN_LINES).join("\n    ");
                for task in tasks {
                    if !output.is_empty() {
                        self.write_task(task, "INFO", &format!("Most recent service output:\n    {output}"));
                    }
                    let code = exit.code;
                    self.end_task(
                        task,
                        Err(format!("cannot start service: exited quickly with code {code}")),
                    );
                }
            }
            State::Starting { since, .. } | State::Running { since, .. } => {
                let output = self.logs.tail(name, TOLD_LINES).join("\n");
                let reason = format!("it ended with code {}; its last output: {output:?}", exit.code);
                self.outputs.push(PodOutput::ServiceEnded(name.to_owned(), reason));
                self.react(name, since, exit.code);
            }
            State::Stopping { then, tasks, .. } => {
                self.set_state(name, State::Stopped { failed: false });
                tasks.into_iter().for_each(|task| self.end_task(task, Ok(())));
                if then == Then::Restart {
                    self.back_off(name);
                }
            }
            State::Stopped { .. } | State::Backoff { .. } => {}
        }
    }

    /// Does what the service asks for at its end.
    fn react(&mut self, name: &str, since: Duration, code: i32) {
        let ran = self.now.since_start.saturating_sub(since);
        // What the plan says now counts, not what it said at the start.
        let Some(service) = self.stack.plan().services.get(name) else { return };
        let limit = service.backoff_limit();
        let action = match code {
            0 => service.on_success,
            _ => service.on_failure,
        };
        if let Some(run) = self.services.get_mut(name).filter(|_| ran >= limit) {
            run.attempts = 0;
        }
        match action.unwrap_or(Action::Restart) {
            Action::Restart => self.back_off(name),
            Action::Ignore => {}
            Action::Shutdown => self.end(if code == 0 { 0 } else { FAILED_SERVICE }),
            Action::SuccessShutdown => self.end(0),
            Action::FailureShutdown => self.end(FAILED_SERVICE),
        }
    }

    /// Lets a service pause before it starts again.
    fn back_off(&mut self, name: &str) {
        if self.ending.is_some() {
            return;
        }
        let Some(service) = self.stack.plan().services.get(name) else { return };
        let attempts = self.services.get(name).map_or(0, |run| run.attempts);
        let pause = pause(service, attempts).max(self.options.limits.shortest_pause);
        let until = self.now.since_start.saturating_add(self.with_jitter(pause));
        if let Some(run) = self.services.get_mut(name) {
            run.attempts = run.attempts.saturating_add(1);
        }
        self.set_state(name, State::Backoff { until });
    }

    /// Stops a service, for a task if there is one.
    pub(super) fn stop_service(&mut self, name: &str, task: Option<TaskId>) {
        let now = self.now.since_start;
        let Some(run) = self.services.get_mut(name) else {
            task.into_iter().for_each(|task| self.end_task(task, Ok(())));
            return;
        };
        match &mut run.state {
            State::Stopped { .. } => task.into_iter().for_each(|task| self.end_task(task, Ok(()))),
            State::Backoff { .. } => {
                self.set_state(name, State::Stopped { failed: false });
                task.into_iter().for_each(|task| self.end_task(task, Ok(())));
            }
            State::Stopping { tasks, then, .. } => {
                *then = Then::Stop;
                tasks.extend(task);
            }
            State::Starting { process, tasks, .. } => {
                let (process, started) = (*process, std::mem::take(tasks));
                self.terminate(name, process, now, Then::Stop, task.into_iter().collect());
                self.fail(started, "cannot start service: it was stopped before it counted as started");
            }
            State::Running { process, .. } => {
                let process = *process;
                self.terminate(name, process, now, Then::Stop, task.into_iter().collect());
            }
        }
    }

    fn terminate(&mut self, name: &str, process: ProcessId, now: Duration, then: Then, tasks: Vec<TaskId>) {
        let delay = self.services.get(name).map_or(Duration::ZERO, |run| run.config.kill_delay());
        let next = Some(now.saturating_add(delay));
        if let Some(run) = self.services.get_mut(name) {
            run.state = State::Stopping { process, next, is_killed: false, then, tasks };
        }
        self.outputs.push(PodOutput::Signal(process, Signal::TERM));
    }

    pub(super) fn tick_services(&mut self) {
        let now = self.now.since_start;
        let due: Vec<String> = self
            .services
            .iter()
            .filter(|(_, run)| run.wake().is_some_and(|at| at <= now))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            let Some(run) = self.services.get_mut(&name) else { continue };
            match &mut run.state {
                State::Starting { process, since, tasks, .. } => {
                    let tasks = std::mem::take(tasks);
                    run.state = State::Running { process: *process, since: *since };
                    tasks.into_iter().for_each(|task| self.end_task(task, Ok(())));
                }
                State::Stopping { process, next, is_killed: is_killed @ false, .. } => {
                    *is_killed = true;
                    *next = Some(now.saturating_add(GIVE_UP_DELAY));
                    self.outputs.push(PodOutput::Signal(*process, Signal::KILL));
                }
                State::Stopping { next, tasks, .. } => {
                    *next = None;
                    let tasks = std::mem::take(tasks);
                    self.fail(tasks, "process still runs after SIGTERM and SIGKILL");
                }
                State::Backoff { .. } => {
                    run.restarts = run.restarts.saturating_add(1);
                    self.spawn_service(&name, Vec::new());
                }
                State::Stopped { .. } | State::Running { .. } => {}
            }
        }
    }

    /// Does what services ask for when a check has failed.
    pub(super) fn react_to_check(&mut self, check: &str) {
        let reactions: Vec<(String, Action)> = self
            .stack
            .plan()
            .services
            .iter()
            .filter_map(|(name, service)| Some((name.clone(), *service.on_check_failure.get(check)?)))
            .collect();
        for (name, action) in reactions {
            let Some(process) = self.services.get(&name).and_then(Run::process) else { continue };
            match action {
                Action::Ignore => {}
                Action::Restart => {
                    let tasks = match self.services.get_mut(&name).map(|run| &mut run.state) {
                        Some(State::Starting { tasks, .. }) => std::mem::take(tasks),
                        _ => Vec::new(),
                    };
                    self.terminate(&name, process, self.now.since_start, Then::Restart, Vec::new());
                    self.fail(tasks, &format!("cannot start service: check {check:?} failed"));
                }
                Action::Shutdown | Action::FailureShutdown => self.end(FAILED_CHECK),
                Action::SuccessShutdown => self.end(0),
            }
        }
    }

    /// Returns true if the pod ends, so that nothing may be started.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.ending, Some(Ending { .. }))
    }
}

/// Returns the pause before a restart, without jitter.
pub(super) fn pause(service: &Service, attempts: u32) -> Duration {
    let (delay, limit) = (service.backoff_delay(), service.backoff_limit());
    let factor = service.backoff_factor().powi(i32::try_from(attempts).unwrap_or(i32::MAX));
    // Too large, or not a number: the limit.
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).map_or(limit, |pause| pause.min(limit))
}
