//! `cancel-task`

use clap::Args;
use periapt_host_api::{
    TaskId,
    command::{Answer, Command},
};

use crate::{
    context::{Context, ModelArg},
    error::Result,
};

/// Cancel tasks that wait, and stop those that run
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt cancel-task 2\n  periapt cancel-task 2 3")]
pub(crate) struct CancelTask {
    /// The tasks' numbers
    #[arg(required = true)]
    ids: Vec<TaskId>,
    #[command(flatten)]
    model: ModelArg,
}

impl CancelTask {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let commands = self.ids.iter().map(|task| Command::CancelTask { task: *task }).collect();
        let report = |_, answer| {
            if let Answer::Task { id, status } = answer {
                context.say(format_args!("task {id}: {status}"));
            }
        };
        model.commands(commands, report).await
    }
}
