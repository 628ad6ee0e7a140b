//! `cancel-event`

use clap::Args;
use periapt_host_api::{EventId, UnitName, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Cancel later events of a unit
///
/// `show-unit` lists them as pending-events, with their numbers. If the hook of such an event has failed, the unit goes on
/// without it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt cancel-event mysql/0 3\n  periapt cancel-event mysql/0 3 4")]
pub(crate) struct CancelEvent {
    /// The unit
    unit: UnitName,
    /// The events' numbers
    #[arg(required = true)]
    ids: Vec<EventId>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for CancelEvent {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let command = |event: &EventId| Command::CancelEvent { unit: self.unit.clone(), event: *event };
        let ids = self.ids.clone();
        let report = |index: usize, _| {
            if let Some(id) = ids.get(index) {
                context.say(format_args!("event {id} of {} is cancelled", self.unit));
            }
        };
        model.commands(self.ids.iter().map(command).collect(), report).await
    }
}
