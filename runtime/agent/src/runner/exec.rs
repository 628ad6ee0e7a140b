//! The scripts that operators run on units (`docs/hook-model.md` C-9), and their commands in containers. A script has a
//! hook's context and files. It loads none of the charm's code, so it runs in this process, within the limits of its
//! language. A command in a container runs there.

use std::{sync::Arc, time::Duration};

use periapt_hook::{CallAnswer, CallError, ExecFailure, HookContext, MAX_ASKED, OutputStream, ToolOutput};
use periapt_host_api::{
    Timestamp,
    exec::{ExecCommand, ExecInput},
    view::View,
};
use periapt_sandbox::{Budgets, HookServices as _, ResourcesMount, Seed};
use periapt_shell::{Reply, Request, Running, Script, ScriptEnd, ScriptProgress};
use periapt_uniter::{
    HookRun,
    executor::{Returned, RunReport},
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    RunnerContext,
    hook::{self, NotBegun, Services},
    units::EarlySender,
};

mod container;
mod files;

use container::{ContainerCommand, ContainerError};
use files::ExecFiles;

/// The reason why a script could not start, or was stopped.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    /// The script has no context.
    #[error(transparent)]
    NotBegun(#[from] NotBegun),
    /// The script's task cannot run.
    #[error(transparent)]
    Task(#[from] ExecFailure),
    /// The charm declares no such container.
    #[error("{0}")]
    NoContainer(CallError),
    /// The command in a container has no exit code.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// A hook tool requested inputs without end, which no tool does.
    #[error("the tool stayed undecided")]
    Undecided,
}

/// Runs a script until it ends, exceeds its budget, or is interrupted.
pub(super) async fn execute(
    runner: &Arc<RunnerContext>,
    view: View,
    run: &HookRun,
    early: &EarlySender,
    interrupt: &CancellationToken,
) -> RunReport {
    let started_at = Timestamp::now();
    let budgets = hook::budgets(&view, &run.unit, &run.event);
    let (context, mut work) = match begin(runner, &view, run, budgets.wall) {
        Ok(begun) => begun,
        Err(error) => return RunReport::failed(error.to_string(), started_at),
    };
    let services = Services::new(runner, run, early, interrupt);
    let files = ExecFiles::new(runner, &view, run, &budgets, ResourcesMount::of(&context));
    let mut host = Host { context, services: &services, files };
    let ended = tokio::select! {
        biased;
        ended = timeout(budgets.wall, host.carry_out(&mut work)) => Some(ended),
        () = services.interrupted() => None,
    };
    let Host { mut context, .. } = host;
    let (returned, stdout, stderr) = match ended {
        Some(Ok(Ok(returned))) => {
            let (stdout, stderr) = work.into_output().await;
            (returned, stdout, stderr)
        }
        unfinished => {
            let returned = match unfinished {
                Some(Ok(Err(error))) => failed(error.to_string()),
                Some(_) => failed(timed_out(&budgets)),
                None => Returned::Stopped,
            };
            let (stdout, stderr) = work.into_output().await;
            (returned, stdout, stderr)
        }
    };
    tracing::debug!(unit = %run.unit, ?returned, "a script was run");
    context.capture_output(OutputStream::Stdout, &stdout);
    context.capture_output(OutputStream::Stderr, &stderr);
    let mut gathered = context.finish();
    early.push(std::mem::take(&mut gathered.early));
    let ended = matches!(returned, Returned::Exited { .. });
    let mut report = RunReport::of(returned, started_at);
    hook::gathered_by(&mut report, gathered);
    if !ended {
        // The script did not reach its end. Its output so far is shown. Of its effects, only the early ones count:
        // statuses and log.
        report.results.values.clear();
        report.said_failed = None;
    }
    report
}

fn failed(message: String) -> Returned {
    Returned::Failed { code: 1, message }
}

/// The work of a task.
enum Work {
    Script(Running),
    Ended(ScriptEnd),
    InContainer(Box<ContainerCommand>),
}

impl Work {
    /// Returns the output, after the end of what still runs.
    async fn into_output(self) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::Script(script) => script.give_up(),
            Self::Ended(ScriptEnd { stdout, stderr, .. }) => (stdout, stderr),
            Self::InContainer(mut command) => {
                command.kill().await;
                command.into_output()
            }
        }
    }
}

/// Returns the task's work, ready to start, and its context.
fn begin(
    runner: &RunnerContext,
    view: &View,
    run: &HookRun,
    time: Duration,
) -> Result<(HookContext, Work), ScriptError> {
    let mut context = hook::context(runner, view, run, Seed(hook::random()?))?;
    let request = context.begin_exec()?;
    if let (Some(container), ExecCommand::Words(words)) = (&request.container, &request.command) {
        let target = context.pebble_target(container.as_str()).map_err(ScriptError::NoContainer)?;
        let stdin = request.stdin.clone().map(ExecInput::into_bytes).unwrap_or_default();
        let command = ContainerCommand::new(target, words.clone(), stdin, time);
        return Ok((context, Work::InContainer(Box::new(command))));
    }
    let hostname = run.unit.to_string().replace('/', "-");
    let (text, environment) = (request.command.script(), context.environment());
    let script = Script { text, environment, hostname, limits: periapt_shell::ScriptLimits::default() };
    Ok((context, Work::Script(script.start())))
}

fn timed_out(budgets: &Budgets) -> String {
    format!("the script took longer than {} s, and was stopped", budgets.wall.as_secs())
}

/// The answers to a script.
struct Host<'a> {
    context: HookContext,
    services: &'a Services,
    files: ExecFiles<'a>,
}

impl Host<'_> {
    /// Does the work to its end.
    async fn carry_out(&mut self, work: &mut Work) -> Result<Returned, ScriptError> {
        match work {
            Work::Script(script) => {
                let ended = self.drive(script).await?;
                let returned = match &ended.code {
                    Ok(code) => Returned::Exited { code: (*code).into() },
                    Err(past) => failed(past.to_string()),
                };
                *work = Work::Ended(ended);
                Ok(returned)
            }
            Work::InContainer(command) => Ok(Returned::Exited { code: command.run(self.services).await? }),
            Work::Ended(_) => Ok(Returned::Stopped),
        }
    }

    /// Answers the script's requests until it ends.
    async fn drive(&mut self, script: &mut Running) -> Result<ScriptEnd, ScriptError> {
        loop {
            let reply = match script.advance() {
                ScriptProgress::Ended(ended) => return Ok(ended),
                ScriptProgress::Needs(Request::Tool { name, arguments, stdin }) => {
                    Reply::Tool(self.tool(&name, &arguments, stdin.as_deref()).await?)
                }
                ScriptProgress::Needs(Request::Sleep(duration)) => {
                    rest(duration).await;
                    Reply::Done
                }
                ScriptProgress::Needs(Request::Pause) => {
                    tokio::task::yield_now().await;
                    Reply::Done
                }
                ScriptProgress::Needs(Request::File(call)) => Reply::File(self.files.answer(call).await),
            };
            script.answer(reply);
        }
    }

    /// Runs a hook tool with the inputs that it requests.
    async fn tool(
        &mut self,
        name: &str,
        arguments: &[String],
        stdin: Option<&[u8]>,
    ) -> Result<ToolOutput, ScriptError> {
        let Self { context, services, files } = self;
        for _ in 0..=MAX_ASKED {
            let answer = context.run_tool(services.now(), name, arguments, stdin);
            services.early(context.drain_early());
            match answer {
                CallAnswer::Ready(output) => return Ok(output),
                CallAnswer::NeedsLease => {
                    let lease = services.renew_lease().await;
                    context.lease_renewed(lease);
                }
                CallAnswer::NeedsSecret(key) => {
                    let content = services.fetch_secret(key).await;
                    context.secret_fetched(key, content);
                }
                CallAnswer::NeedsResource(key) => {
                    let filename = context.resource_filename(&key.name).unwrap_or_default().to_owned();
                    let fetched = services.fetch_resource(key.clone()).await;
                    let shown = match fetched {
                        Ok(file) => files.show_resource(key.name.as_str(), &filename, file).await,
                        Err(error) => Err(error),
                    };
                    context.resource_fetched(key, shown);
                }
                CallAnswer::NeedsFile(request) => {
                    let content = files.tool(&request).await;
                    context.file_answered(request, content);
                }
            }
        }
        Err(ScriptError::Undecided)
    }
}

/// Sleeps. A sleep of zero lets other tasks run.
async fn rest(duration: Duration) {
    match duration.is_zero() {
        true => tokio::task::yield_now().await,
        false => sleep(duration).await,
    }
}
