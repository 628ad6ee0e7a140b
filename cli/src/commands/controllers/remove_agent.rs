//! `remove-agent`: takes an agent out of a controller.

use clap::Args;
use periapt_host_api::{AgentName, command::ControllerCommand};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::Result,
    prompt::PromptArg,
};

/// Remove an agent from a controller
///
/// The controller refuses the agent from then on, and closes its connections; the agent's process ends. An agent with machines or storage is
/// removed by force alone. Its units then go to other agents after the time of `agent-failover-after` in `periapt
/// model-config`, as those of a host that is gone. Units with storage or workloads, and units that were placed on it by
/// name, stay until `periapt remove-unit --force` removes them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-agent worker-1 --no-prompt")]
pub(crate) struct RemoveAgent {
    /// The agent
    name: AgentName,
    /// Remove it though it has machines or storage
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    prompt: PromptArg,
}

impl Verb for RemoveAgent {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        self.prompt.confirm(&format!("This command will refuse agent \"{}\" from now on.", self.name))?;
        let command = ControllerCommand::RemoveAgent { agent: self.name.clone(), force: self.force };
        controller.client.controller_command(command).await?;
        context.say(format_args!("Agent \"{}\" is removed", self.name));
        Ok(())
    }
}
