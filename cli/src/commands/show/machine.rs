//! `show-machine`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{MachineId, status::MachineStatus};
use serde::Serialize;

use crate::{
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::OutputArgs,
};

/// Show all that is known of machines
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt show-machine\n  periapt show-machine 0 3 --format json")]
pub(crate) struct ShowMachine {
    /// The machines' numbers; none: all
    machines: Vec<MachineId>,
    /// Show times in UTC, as they always are
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

#[derive(Debug, Serialize)]
struct Shown {
    model: String,
    machines: BTreeMap<String, MachineStatus>,
}

impl ShowMachine {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut status = model.client().status(&model.selector).await?;
        let wanted: Vec<_> = self.machines.iter().map(ToString::to_string).collect();
        if let Some(unknown) = wanted.iter().find(|number| !status.machines.contains_key(*number)) {
            return Err(Failure::new(format!("machine {unknown} not found"))
                .with_hint("`periapt machines` lists them"));
        }
        if !wanted.is_empty() {
            status.machines.retain(|number, _| wanted.contains(number));
        }
        let shown = Shown { model: status.model.name, machines: status.machines };
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}
