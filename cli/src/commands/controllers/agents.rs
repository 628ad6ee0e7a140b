//! `agents`: the processes that run units for a controller.

use clap::Args;
use periapt_host_api::command::AgentSummary;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::Result,
    output::{OutputArgs, Table, TextStyle, to_the_second},
};

/// List a controller's agents
#[derive(Debug, Args)]
pub(crate) struct Agents {
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

impl Verb for Agents {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let agents = controller.client.agents().await?;
        if agents.is_empty() {
            context.say("no agents yet: `periapt agent-token NAME` makes a token, with which `periapt agent run` joins");
        }
        self.output.print(context.color, &agents, |agents| {
            let mut table = Table::new([
                "Agent",
                "State",
                "Address",
                "Tags",
                "Version",
                "Program",
                "Machines",
                "Units",
                "Last seen",
            ])
            .right(6)
            .right(7);
            for agent in agents {
                let state = if agent.alive { ("alive", TextStyle::Good) } else { ("down", TextStyle::Bad) };
                table.row([
                    agent.name.as_str().into(),
                    state.into(),
                    agent.addresses.first().map_or("", String::as_str).into(),
                    agent.tags.iter().map(|tag| tag.as_str()).collect::<Vec<_>>().join(",").into(),
                    (&agent.version).into(),
                    program(agent).into(),
                    agent.machines.into(),
                    agent.units.into(),
                    agent.last_seen.map(to_the_second).unwrap_or_default().into(),
                ]);
            }
            table.render()
        })
    }
}

/// Returns the first digits of the digest of an agent's program, and of the one that it did not take.
fn program(agent: &AgentSummary) -> String {
    let Some(program) = &agent.program else { return String::new() };
    let failed = program.failed.as_ref().map(|failed| format!(" ({} failed)", failed.digest.short()));
    format!("{}{}", program.digest.short(), failed.unwrap_or_default())
}
