//! A script that an operator runs (`docs/hook-model.md` C-9). Its context is a hook's, and so are its files; nothing of the
//! charm's code is loaded, so it runs in this process, within the bounds of its language.

use std::{sync::Arc, time::Duration};

use periapt_hook::{CallAnswer, ExecFailure, HookContext, MAX_ASKED, OutputStream, ToolOutput};
use periapt_host_api::{Timestamp, view::View};
use periapt_sandbox::{Budgets, HookServices as _, Seed};
use periapt_shell::{Reply, Request, Running, Script, ScriptEnd, ScriptProgress};
use periapt_uniter::{
    HookRun,
    executor::{Returned, RunReport},
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    World,
    hook::{self, NotBegun, Services},
    units::Says,
};

mod files;

use files::ExecFiles;

/// The reason why a script could not begin, or was stopped.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    /// There is no context for it.
    #[error(transparent)]
    NotBegun(#[from] NotBegun),
    /// Its task cannot be run.
    #[error(transparent)]
    Task(#[from] ExecFailure),
    /// A hook tool asked the host too often, which no tool does.
    #[error("the tool stayed undecided")]
    Undecided,
}

/// Runs the script until it ends, is past its budget, or is to stop.
pub(super) async fn execute(
    world: &Arc<World>,
    view: View,
    run: &HookRun,
    says: &Says,
    interrupt: &CancellationToken,
) -> RunReport {
    let started_at = Timestamp::now();
    let (context, mut script) = match begin(world, &view, run) {
        Ok(begun) => begun,
        Err(error) => return RunReport::failed(error.to_string(), started_at),
    };
    let services = Services::new(world, run, says, interrupt);
    let budgets = hook::budgets(&view, &run.unit, &run.event);
    let files = ExecFiles::new(world, &view, run, &budgets, context.has_resources());
    let mut host = Host { context, services: &services, files };
    let ended = tokio::select! {
        biased;
        ended = timeout(budgets.wall, host.drive(&mut script)) => Some(ended),
        () = services.interrupted() => None,
    };
    let Host { mut context, .. } = host;
    let (returned, stdout, stderr) = match ended {
        Some(Ok(Ok(ScriptEnd { code, stdout, stderr }))) => {
            let returned = match code {
                Ok(code) => Returned::Exited { code: code.into() },
                Err(past) => failed(past.to_string()),
            };
            (returned, stdout, stderr)
        }
        unfinished => {
            let returned = match unfinished {
                Some(Ok(Err(error))) => failed(error.to_string()),
                Some(_) => failed(timed_out(&budgets)),
                None => Returned::Stopped,
            };
            let (stdout, stderr) = script.give_up();
            (returned, stdout, stderr)
        }
    };
    tracing::debug!(unit = %run.unit, ?returned, "a script was run");
    context.capture_output(OutputStream::Stdout, &stdout);
    context.capture_output(OutputStream::Stderr, &stderr);
    let mut gathered = context.finish();
    says.push(std::mem::take(&mut gathered.early));
    let ended = matches!(returned, Returned::Exited { .. });
    let mut report = RunReport::of(returned, started_at);
    hook::gathered_by(&mut report, gathered);
    if !ended {
        // The script did not come to its end. What it has said so far is shown, and of what it asked for only what leaves
        // a hook early, its statuses and log, is done.
        report.results.values.clear();
        report.said_failed = None;
    }
    report
}

fn failed(message: String) -> Returned {
    Returned::Failed { code: 1, message }
}

/// The task's script, at its beginning, and its context.
fn begin(world: &World, view: &View, run: &HookRun) -> Result<(HookContext, Running), ScriptError> {
    let mut context = hook::context(world, view, run, Seed(hook::random()?))?;
    let request = context.begin_exec()?;
    let hostname = run.unit.to_string().replace('/', "-");
    let (text, environment) = (request.command.script(), context.environment());
    let script = Script { text, environment, hostname, limits: periapt_shell::ScriptLimits::default() };
    Ok((context, script.start()))
}

fn timed_out(budgets: &Budgets) -> String {
    format!("the script took longer than {} s, and was stopped", budgets.wall.as_secs())
}

/// What answers a script.
struct Host<'a> {
    context: HookContext,
    services: &'a Services,
    files: ExecFiles<'a>,
}

impl Host<'_> {
    /// Gives the script what it asks for, to its end.
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

    /// Runs a hook tool, and gives it what it asks for.
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

/// Sleeps. A sleep of no time lets others run, too.
async fn rest(duration: Duration) {
    match duration.is_zero() {
        true => tokio::task::yield_now().await,
        false => sleep(duration).await,
    }
}
