//! `agent-token`: lets another host's agent join a controller.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use periapt_host_api::{AgentName, Timestamp, agent::MAX_POOL_USES, command::ControllerCommand};
use periapt_transport::{Readers, write_file};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Failure, Result, with_source},
    join::{JoinTerms, admit, admit_pool},
    output::{Sink, to_the_second},
    parse::duration,
};

/// Make a token with which an agent joins
///
/// The token is for one agent's name, can be used once, and expires. Its holder can run units as that agent: hand it over
/// as a secret. It is printed, or written to a file that only you can read. On the agent's host `periapt agent run`
/// takes it from a file (`--token-file`) or from standard input (`--token -`).
///
/// With `--pool NAME` several agents join with one token, each under a name of its own that begins with NAME and a hyphen.
/// A newer token of the pool replaces it. An agent that was removed can join again with it as long as it is valid:
/// `--close` ends it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt agent-token worker-1 --output worker-1.token\n  \
                  periapt agent-token worker-1 --expires 10m\n  \
                  periapt agent-token --pool worker --uses 20 --output worker.token\n  \
                  periapt agent-token --pool worker --close")]
pub(crate) struct AgentToken {
    /// The agent's name
    #[arg(required_unless_present = "pool", conflicts_with = "pool")]
    name: Option<AgentName>,
    /// Let agents join whose names begin with this name and a hyphen
    #[arg(long, value_name = "NAME")]
    pool: Option<AgentName>,
    /// The number of agents that may join with the token of a pool
    #[arg(long, value_name = "COUNT", default_value_t = 10, conflicts_with = "name", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_POOL_USES)))]
    uses: u32,
    /// Refuse the pool's token from now on, and make none
    #[arg(long, conflicts_with_all = ["name", "uses", "output", "expires"])]
    close: bool,
    /// The time for which the token can be used
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration::parse)]
    expires: Duration,
    /// Let an agent of this name join that has joined before: the earlier one is refused from then on
    #[arg(long, conflicts_with = "pool")]
    again: bool,
    /// The file for the token, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for AgentToken {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let authority = controller.entry.ca_cert.as_deref().ok_or_else(|| {
            Failure::new(format!("this client does not know the authority of controller {}", controller.name))
                .with_hint("`periapt controller start` on its host records it")
        })?;
        let client = &controller.client;
        let (joining, whom) = match (&self.name, &self.pool) {
            (_, Some(pool)) if self.close => {
                client.controller_command(ControllerCommand::ClosePool { pool: pool.clone() }).await?;
                context.say(format_args!("No further agents of pool \"{pool}\" may join"));
                return Ok(());
            }
            (_, Some(pool)) => {
                let text = admit_pool(client, pool, authority, self.expires, self.uses).await?;
                let agents = if self.uses == 1 { "agent" } else { "agents" };
                (text, format!("{} {agents} of names \"{pool}-...\" may join", self.uses))
            }
            (Some(name), None) => {
                let terms = JoinTerms { valid_for: self.expires, again: self.again };
                let text = admit(client, name, authority, terms).await?;
                (text, format!("Agent \"{name}\" may join once"))
            }
            (None, None) => return Err(Failure::misused("an agent's name or --pool NAME is needed")),
        };
        let text = format!("{}\n", joining.reveal());
        match &self.output {
            Some(path) => write_file(path, &text, Readers::Owner).map_err(with_source)?,
            None => Sink::new(None, context.color)?.write(text)?,
        }
        let until = Timestamp::now().checked_add(self.expires).map(to_the_second).unwrap_or_default();
        context.say(format_args!("{whom}, until {until}"));
        Ok(())
    }
}
