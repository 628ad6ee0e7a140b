//! `cancel-task`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    TaskId,
    action::TaskStatus,
    command::{Answer, Command},
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::OutputArgs,
};

/// Cancel tasks that wait, and stop those that run
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt cancel-task 2\n  periapt cancel-task 2 3")]
pub(crate) struct CancelTask {
    /// The tasks' numbers
    #[arg(required = true)]
    ids: Vec<TaskId>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

#[derive(Debug, Serialize)]
struct Cancelled {
    id: String,
    status: TaskStatus,
}

impl Verb for CancelTask {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let commands = self.ids.iter().map(|task| Command::CancelTask { task: *task }).collect();
        let mut cancelled = BTreeMap::new();
        let done = model.commands(commands, |_, answer| {
            if let Answer::Task { id, status } = answer {
                context.say(format_args!("task {id}: {status}"));
                cancelled.insert(id.to_string(), Cancelled { id: id.to_string(), status });
            }
        });
        done.await?;
        // Notes beside the output have named the tasks, so there is no table.
        self.output.print(context.color, &cancelled, |_| String::new())
    }
}
