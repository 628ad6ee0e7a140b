//! Commands of `exec`.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::{Owner, Supervisor, services::account};
use crate::{
    change::{ChangeKind, NewTask, Work},
    duration::GoDuration,
    message::{
        Account, ExecBody, Exit, PodAnswer, PodOutput, PodRefusal, ProcessId, Spawn, Stdio, TaskId,
        WebsocketName,
    },
    signal::Signal,
};

/// The time in which a client must connect its websockets.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time after SIGKILL in which others, such as processes in sessions of their own, may hold the output open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A command.
#[derive(Debug, Clone)]
pub(super) struct Exec {
    spawn: Spawn,
    timeout: Option<Duration>,
    missing: BTreeSet<WebsocketName>,
    connect_until: Duration,
    process: Option<ProcessId>,
    kill_at: Option<Duration>,
    abandon_at: Option<Duration>,
    /// The reason for which the command was ended.
    ended: Option<String>,
}

impl Exec {
    pub(super) fn wake(&self) -> Option<Duration> {
        match self.process {
            None => Some(self.connect_until),
            Some(_) => self.kill_at.or(self.abandon_at),
        }
    }
}

impl Supervisor {
    /// Begins a command: it runs once its websockets are connected.
    pub(super) fn exec(&mut self, body: ExecBody) -> Result<PodAnswer, PodRefusal> {
        let limits = &self.options.limits;
        if self.execs.len() >= limits.execs {
            return Err(PodRefusal::busy(format!("{} commands run already; try again later", limits.execs)));
        }
        check(&body, limits.exec)?;
        let service = match body.service_context.as_deref() {
            None | Some("") => None,
            Some(name) => Some(
                self.stack
                    .plan()
                    .services
                    .get(name)
                    .ok_or_else(|| PodRefusal::bad(format!("context service {name:?} not found")))?,
            ),
        };
        let mut environment = service.map(|it| it.environment.clone()).unwrap_or_default();
        environment.extend(body.environment);
        let named = |name: Option<String>| name.filter(|it| !it.is_empty());
        let own = Account {
            user: named(body.user),
            user_id: body.user_id,
            group: named(body.group),
            group_id: body.group_id,
        };
        let account = match service {
            Some(service) if own.is_own() => account(service),
            _ => own,
        };
        let working_dir = body.working_dir.filter(|it| !it.is_empty());
        let working_dir =
            working_dir.or_else(|| service.map(|it| it.working_dir.clone())).unwrap_or_default();
        let summary = format!("Execute command {:?}", body.command.first().map_or("", String::as_str));
        let task = NewTask {
            work: Work::Exec,
            kind: "exec",
            summary: summary.replacen("Execute", "exec", 1),
            after: Vec::new(),
        };
        let change = self.create_change(ChangeKind::Exec, summary, vec![task]);
        let task = self.only_task(change);
        let split_stderr = body.split_stderr && !body.terminal;
        let mut missing = BTreeSet::from([WebsocketName::Control, WebsocketName::Stdio]);
        missing.extend(split_stderr.then_some(WebsocketName::Stderr));
        let result = json!({
            "environment": environment,
            "task-id": task.to_string(),
            "working-dir": working_dir,
        });
        let exec = Exec {
            spawn: Spawn {
                command: body.command,
                environment,
                working_dir,
                account,
                stdio: Stdio::Websockets {
                    task,
                    split_stderr,
                    terminal: body.terminal.then_some((body.width, body.height)),
                },
            },
            timeout: body.timeout.map(|it| it.0),
            missing,
            connect_until: self.now.since_start.saturating_add(CONNECT_TIMEOUT),
            process: None,
            kill_at: None,
            abandon_at: None,
            ended: None,
        };
        self.execs.insert(task, exec);
        Ok(PodAnswer::Async(change, result))
    }

    /// Grants a websocket. The command starts with the last one.
    pub(super) fn websocket(&mut self, task: &str, name: WebsocketName) -> Result<PodAnswer, PodRefusal> {
        let missing =
            || PodRefusal::missing(format!("cannot find websocket {:?} of task {task:?}", name.as_str()));
        let id = TaskId::read(task).ok_or_else(missing)?;
        let now = self.now.since_start;
        let exec = self.execs.get_mut(&id).ok_or_else(missing)?;
        if exec.process.is_some() || !exec.missing.remove(&name) {
            return Err(missing());
        }
        if exec.missing.is_empty() {
            let (spawn, timeout) = (exec.spawn.clone(), exec.timeout);
            let process = self.spawn(Owner::Exec(id), spawn);
            if let Some(exec) = self.execs.get_mut(&id) {
                exec.process = Some(process);
                exec.kill_at = timeout.map(|timeout| now.saturating_add(timeout));
            }
        }
        Ok(PodAnswer::Websocket(id))
    }

    pub(super) fn exec_spawn_failed(&mut self, task: TaskId, message: &str) {
        self.execs.remove(&task);
        self.outputs.push(PodOutput::Forget(task));
        self.end_task(task, Err(format!("cannot start command: {message}")));
    }

    pub(super) fn exec_exited(&mut self, task: TaskId, exit: &Exit) {
        let Some(exec) = self.execs.remove(&task) else { return };
        self.set_task_data(task, "exit-code", Value::from(exit.code));
        self.end_task(task, exec.ended.map_or(Ok(()), Err));
    }

    /// Ends a command before its time.
    pub(super) fn kill_exec(&mut self, task: TaskId, why: &str) {
        let abandon_at = Some(self.now.since_start.saturating_add(DRAIN_TIMEOUT));
        let Some(exec) = self.execs.get_mut(&task) else { return };
        exec.ended.get_or_insert_with(|| why.to_owned());
        match exec.process {
            Some(process) => {
                (exec.kill_at, exec.abandon_at) = (None, abandon_at);
                self.outputs.push(PodOutput::Signal(process, Signal::KILL));
            }
            None => {
                self.execs.remove(&task);
                self.outputs.push(PodOutput::Forget(task));
                self.end_task(task, Err(why.to_owned()));
            }
        }
    }

    pub(super) fn tick_execs(&mut self) {
        let now = self.now.since_start;
        let due: Vec<TaskId> = self
            .execs
            .iter()
            .filter(|(_, exec)| exec.wake().is_some_and(|at| at <= now))
            .map(|(task, _)| *task)
            .collect();
        for task in due {
            let Some(exec) = self.execs.get_mut(&task) else { continue };
            match (exec.process, exec.kill_at) {
                (None, _) => {
                    let names: Vec<_> = exec.missing.iter().map(|name| name.as_str()).collect();
                    let why = format!("timed out waiting for websocket connections: {}", names.join(", "));
                    self.kill_exec(task, &why);
                }
                (Some(_), Some(_)) => {
                    let after = GoDuration(exec.timeout.unwrap_or_default());
                    self.kill_exec(task, &format!("timed out after {after}"));
                }
                (Some(process), None) => {
                    exec.abandon_at = None;
                    self.outputs.push(PodOutput::Abandon(process));
                }
            }
        }
    }
}

/// Refuses a command that no process can be given.
fn check(body: &ExecBody, most: usize) -> Result<(), PodRefusal> {
    if body.command.first().is_none_or(String::is_empty) {
        return Err(PodRefusal::bad("must specify command"));
    }
    let environment = body.environment.iter().flat_map(|(name, value)| [name, value]);
    let texts: Vec<&String> = body
        .command
        .iter()
        .chain(environment)
        .chain(&body.working_dir)
        .chain(&body.service_context)
        .collect();
    if texts.iter().map(|text| text.len() + 1).sum::<usize>() > most {
        return Err(PodRefusal::bad(format!(
            "command, environment and directory together take more than {most} bytes"
        )));
    }
    if texts.iter().any(|text| text.contains('\0')) {
        return Err(PodRefusal::bad("command, environment and directory must not contain a null byte"));
    }
    if body.environment.keys().any(|name| name.is_empty() || name.contains('=')) {
        return Err(PodRefusal::bad("names of environment variables must not be empty or contain \"=\""));
    }
    Ok(())
}
