//! Tasks that a command follows until they end, and their output.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::Args;
use futures_util::StreamExt as _;
use periapt_client::ClientError;
use periapt_host_api::{
    ActionOperationId, TaskId, UnitName,
    action::{EnqueueOperation, EnqueuedOperation, TaskDetails, TaskUpdate},
    command::{Answer, Command, CommandResult},
};
use tokio::time::{Instant, sleep, timeout_at};

use super::shown::{self, Format};
use crate::{
    context::{Context, Model},
    error::{Failure, Result},
    output::{ColorChoice, Sink, note},
    parse::duration,
};

/// The command that follows: Juju shows an action as it goes, and the result of `exec` like a local command's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowMode {
    Run,
    Exec,
}

impl FollowMode {
    /// Returns the default wait.
    fn default_wait(self) -> Duration {
        match self {
            Self::Run => Duration::from_secs(60),
            Self::Exec => Duration::from_secs(300),
        }
    }
}

/// The pause before a broken stream is opened again.
const AGAIN: Duration = Duration::from_millis(500);

/// The options for following tasks and for their results.
#[derive(Debug, Args)]
pub(super) struct FollowArgs {
    /// The longest wait for the results; a minute by default, five for `exec`
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "background")]
    wait: Option<Duration>,
    /// Do not wait; print the scheduled tasks
    #[arg(long)]
    background: bool,
    /// Show times in UTC, as they always are
    #[arg(long)]
    utc: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "plain")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl FollowArgs {
    /// Returns true if none of the options is given: nothing is wanted of a task but its output.
    pub(super) fn is_default(&self) -> bool {
        let Self { wait, background, utc: _, format, output } = self;
        wait.is_none() && !background && *format == Format::Plain && output.is_none()
    }
}

/// The tasks to wait for, with their units.
type Waited = BTreeMap<TaskId, UnitName>;

impl FollowArgs {
    /// Enqueues an operation, follows it, and prints its results.
    pub(super) async fn carry_out(
        self,
        context: &Context,
        model: &Model,
        request: EnqueueOperation,
        mode: FollowMode,
    ) -> Result<()> {
        let enqueued = match model.command(Command::EnqueueOperation(request)).await? {
            Answer::Operation(enqueued) => enqueued,
            other => return Err(Failure::unexpected(&other)),
        };
        let (waited, refused) = sorted(&enqueued);
        if waited.is_empty() {
            // The exit code is 0, as Juju's, which programs that drive it rely on.
            let reasons = refused.join("\n");
            note(format_args!("Operation {} failed to schedule any tasks:\n{reasons}", enqueued.id));
            return Ok(());
        }
        for reason in refused {
            note(format_args!("ERROR {reason}"));
        }
        if self.background {
            scheduled(context, enqueued.id, &waited);
            return Ok(());
        }
        if mode == FollowMode::Run {
            running(context, enqueued.id, &waited);
        }
        let deadline =
            Instant::now() + self.wait.filter(|wait| !wait.is_zero()).unwrap_or(mode.default_wait());
        let mut tasks = follow(model, enqueued.id, &waited, deadline).await?;
        let late: Vec<TaskId> =
            waited.keys().filter(|id| !tasks.iter().any(|task| task.id == **id)).copied().collect();
        for id in &late {
            tasks.push(model.client().task(&model.selector, *id).await?);
        }
        tasks.sort_by_key(|task| task.id);
        print(self.format, self.output, context.color, &tasks)?;
        match late.is_empty() {
            true => check_return_codes(&tasks),
            false => Err(late_failure(&late, &waited)),
        }
    }
}

fn sorted(enqueued: &EnqueuedOperation) -> (Waited, Vec<String>) {
    let (mut waited, mut refused) = (Waited::new(), Vec::new());
    for task in &enqueued.tasks {
        match &task.task {
            CommandResult::Ok((id, unit)) => {
                waited.insert(*id, unit.clone());
            }
            CommandResult::Error(refusal) => refused.push(refusal.message.clone()),
        }
    }
    (waited, refused)
}

fn tag(unit: &UnitName) -> String {
    format!("unit-{}-{}", unit.application(), unit.number())
}

fn listed(waited: &Waited) -> String {
    waited.iter().map(|(id, unit)| format!("  - task {id} on {}\n", tag(unit))).collect()
}

fn running(context: &Context, id: ActionOperationId, waited: &Waited) {
    let plural = if waited.len() == 1 { "" } else { "s" };
    context.say(format_args!(
        "Running operation {id} with {} task{plural}\n{}",
        waited.len(),
        listed(waited)
    ));
    let tasks: Vec<String> = waited.keys().map(|id| format!("Waiting for task {id}...")).collect();
    context.say(tasks.join("\n"));
}

fn scheduled(context: &Context, id: ActionOperationId, waited: &Waited) {
    let mut ids = waited.keys();
    match (ids.next(), ids.next()) {
        (Some(task), None) => {
            context.say(format_args!("Scheduled operation {id} with task {task}"));
            context.say(format_args!("Check operation status with 'periapt show-operation {id}'"));
            context.say(format_args!("Check task status with 'periapt show-task {task}'"));
        }
        _ => {
            context.say(format_args!(
                "Scheduled operation {id} with {} tasks\n{}",
                waited.len(),
                listed(waited)
            ));
            context.say(format_args!("Check operation status with 'periapt show-operation {id}'"));
            context.say("Check task status with 'periapt show-task <id>'");
        }
    }
}

/// Shows messages as they come, and gathers the tasks that end before the deadline. A broken stream is opened again,
/// and no message is shown twice.
pub(super) async fn follow(
    model: &Model,
    id: ActionOperationId,
    waited: &Waited,
    deadline: Instant,
) -> Result<Vec<TaskDetails>> {
    let mut ended: BTreeMap<TaskId, TaskDetails> = BTreeMap::new();
    let mut shown: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut controller_wait = ControllerWait::default();
    let following = async {
        loop {
            let mut told: BTreeMap<TaskId, usize> = BTreeMap::new();
            let mut stream = match model.client().watch_operation(&model.selector, id).await {
                Ok(stream) => stream,
                Err(error) => {
                    controller_wait.after(error).await?;
                    continue;
                }
            };
            while let Some(update) = stream.next().await {
                let update = match update {
                    Ok(update) => update,
                    Err(error) => {
                        controller_wait.after(error).await?;
                        break;
                    }
                };
                match update {
                    TaskUpdate::Message { task, message } if waited.contains_key(&task) => {
                        let (told, shown) = (told.entry(task).or_default(), shown.entry(task).or_default());
                        *told += 1;
                        if *told > *shown {
                            *shown = *told;
                            note(shown::live(&message));
                        }
                    }
                    TaskUpdate::Ended(task) if waited.contains_key(&task.id) => {
                        match model.client().rest_of_task(&model.selector, *task).await {
                            Ok(task) => drop(ended.insert(task.id, task)),
                            Err(error @ periapt_client::ClientError::Refused(_)) => {
                                return Err(Failure::from(error));
                            }
                            Err(_) => break,
                        }
                    }
                    TaskUpdate::Message { .. } | TaskUpdate::Ended(_) => {}
                }
                if ended.len() == waited.len() {
                    return Ok::<(), Failure>(());
                }
            }
            sleep(AGAIN).await;
        }
    };
    // Ended tasks are shown even if others are late.
    if let Ok(followed) = timeout_at(deadline, following).await {
        followed?;
    }
    Ok(ended.into_values().collect())
}

/// The wait for an unreachable controller, with one message.
#[derive(Debug, Default)]
struct ControllerWait {
    said: bool,
}

impl ControllerWait {
    /// Pauses after a temporary error. Returns any other error.
    async fn after(&mut self, error: ClientError) -> Result<()> {
        if !error.is_temporary() {
            return Err(error.into());
        }
        if !std::mem::replace(&mut self.said, true) {
            note(format_args!("Waiting for the controller: {error}"));
        }
        sleep(AGAIN).await;
        Ok(())
    }
}

pub(super) fn print(
    format: Format,
    output: Option<PathBuf>,
    color: ColorChoice,
    tasks: &[TaskDetails],
) -> Result<()> {
    Sink::new(output.as_deref(), color)?.write(&shown::tasks(format, tasks)?)
}

/// Fails if a return code is not 0, with Juju's message. A task that its action failed, or that was stopped, has a
/// return code of 0 or none. Its status tells that, and its message is never part of this error, because programs that
/// drive Juju search errors for words such as `timed out`.
pub(super) fn check_return_codes(tasks: &[TaskDetails]) -> Result<()> {
    let failed: Vec<String> = tasks
        .iter()
        .filter_map(|task| Some((task.id, task.results.as_ref()?.return_code)))
        .filter(|(_, code)| *code >= 1)
        .map(|(id, code)| format!(" - id \"{id}\" with return code {code}"))
        .collect();
    match failed.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::new(format!(
            "the following task failed:\n{one}\n\nuse 'periapt show-task' to inspect the failure"
        ))),
        several => Err(Failure::new(format!(
            "the following tasks failed:\n{}\n\nuse 'periapt show-task' to inspect the failures",
            several.join("\n")
        ))),
    }
}

fn late_failure(late: &[TaskId], waited: &Waited) -> Failure {
    let units: Vec<String> =
        late.iter().filter_map(|id| waited.get(id)).map(|unit| format!("unit {unit}")).collect();
    Failure::new(format!("timed out waiting for results from: {}", units.join(", ")))
        .with_hint("the tasks go on; `periapt show-task` shows them, `periapt cancel-task` stops them")
}
