//! `operations` and `show-operation`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    ActionOperationId, ApplicationName, UnitName,
    action::{OperationDetails, OperationQuery, TaskStatus},
};
use tokio::time::Instant;

use super::{follow::follow, shown::Operation, waiting::WaitArgs};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{Format, OutputArgs, Table, Text},
};

/// The most tasks of an operation that the table names.
const SHOWN_TASKS: usize = 5;

/// List operations, the newest first
#[derive(Debug, Args)]
#[command(visible_alias = "list-operations")]
#[command(after_help = "\
Examples:
  periapt operations
  periapt operations --apps mysql --status pending,running
  periapt operations --actions backup --limit 10 --format yaml")]
pub(crate) struct Operations {
    /// Only of these actions
    #[arg(long, value_name = "ACTION,...", value_delimiter = ',')]
    actions: Vec<String>,
    /// Only on units of these applications
    #[arg(long, visible_alias = "apps", value_name = "APPLICATION,...", value_delimiter = ',')]
    applications: Vec<ApplicationName>,
    /// Only on these units
    #[arg(long, value_name = "UNIT,...", value_delimiter = ',')]
    units: Vec<UnitName>,
    /// Only in these states
    #[arg(long, value_name = "STATUS,...", value_delimiter = ',')]
    status: Vec<TaskStatus>,
    /// The most operations to list
    #[arg(long, default_value = "50")]
    limit: u32,
    /// Skip this many of the newest
    #[arg(long, default_value = "0")]
    offset: u32,
    /// Show times in UTC, as they always are
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Show an operation with its tasks
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt show-operation 1\n  periapt show-operation 1 --wait 5m")]
pub(crate) struct ShowOperation {
    /// The operation's number
    id: ActionOperationId,
    #[command(flatten)]
    waiting: WaitArgs,
    /// Show times in UTC, as they always are
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Operations {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let query = OperationQuery {
            actions: self.actions,
            applications: self.applications,
            units: self.units,
            status: self.status,
            limit: Some(self.limit),
            offset: self.offset,
        };
        let operations = model.client().operations(&model.selector, &query).await?;
        if operations.is_empty() {
            context.say("no matching operations");
            return Ok(());
        }
        if self.output.format == Format::Tabular {
            return self.output.print(context.color, &operations, |operations| table(operations));
        }
        let by_id: BTreeMap<String, Operation> =
            operations.iter().map(|operation| (operation.id.to_string(), operation.into())).collect();
        self.output.print(context.color, &by_id, |_| String::new())
    }
}

impl Verb for ShowOperation {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut operation = model.client().operation(&model.selector, self.id).await?;
        let open = operation.tasks.iter().filter(|task| task.status.is_open());
        let waited: BTreeMap<_, _> = open.map(|task| (task.id, task.unit.clone())).collect();
        if let Some(wait) = self.waiting.longest_wait().filter(|_| !waited.is_empty()) {
            follow(&model, self.id, &waited, Instant::now() + wait).await?;
            operation = model.client().operation(&model.selector, self.id).await?;
        }
        // Juju has no table for it: the default format is YAML.
        self.output.or_yaml().print(context.color, &Operation::from(&operation), |_| String::new())
    }
}

fn table(operations: &[OperationDetails]) -> Text {
    let heading = ["ID", "Status", "Started", "Finished", "Task IDs", "Summary"];
    let mut table = Table::new(heading).right(0);
    let time = |time: Option<jiff::Timestamp>| {
        time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string()).unwrap_or_default()
    };
    for operation in operations {
        let shown = operation.tasks.iter().take(SHOWN_TASKS).map(|task| task.id.to_string());
        let tasks = shown.collect::<Vec<_>>().join(",");
        let more = if operation.tasks.len() > SHOWN_TASKS { "..." } else { "" };
        table.row([
            operation.id.to_string().into(),
            operation.status.as_str().into(),
            time(operation.started()).into(),
            time(operation.completed()).into(),
            format!("{tasks}{more}").into(),
            operation.summary.clone().into(),
        ]);
    }
    table.render()
}
