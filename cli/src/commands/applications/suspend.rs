//! `suspend-relation` and `resume-relation`.

use clap::Args;
use periapt_host_api::{RelationId, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Suspend relations with offers of this model
///
/// The units of both sides run their departed and broken hooks, and the relations stay. `periapt offers` shows their
/// numbers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt suspend-relation 4
  periapt suspend-relation 4 7 --message 'the bill is not paid'")]
pub(crate) struct SuspendRelation {
    /// Their numbers
    #[arg(value_name = "NUMBER", required = true)]
    relations: Vec<RelationId>,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
    #[command(flatten)]
    model: ModelArg,
}

/// Resume suspended relations with offers of this model
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt resume-relation 4 7")]
pub(crate) struct ResumeRelation {
    /// Their numbers
    #[arg(value_name = "NUMBER", required = true)]
    relations: Vec<RelationId>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for SuspendRelation {
    async fn run(self, context: &Context) -> Result<()> {
        let message = self.message;
        let suspend = |relation| Command::SuspendRelation { relation, message: message.clone() };
        let commands = self.relations.into_iter().map(suspend).collect();
        context.model(&self.model)?.commands(commands, |_, _| {}).await
    }
}

impl Verb for ResumeRelation {
    async fn run(self, context: &Context) -> Result<()> {
        let resume = |relation| Command::ResumeRelation { relation };
        let commands = self.relations.into_iter().map(resume).collect();
        context.model(&self.model)?.commands(commands, |_, _| {}).await
    }
}
