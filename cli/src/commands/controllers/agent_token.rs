//! `agent-token`: lets another host's agent join a controller.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use periapt_host_api::{AgentName, Timestamp};
use periapt_transport::{Readers, write_file};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Failure, Result, with_source},
    join::{JoinTerms, admit},
    output::{Sink, to_the_second},
    parse::duration,
};

/// Make a token with which an agent joins
///
/// The token is for one agent's name, can be used once, and expires. Its holder can run units as that agent: hand it over
/// as a secret. It is printed, or written to a file that only you can read. On the agent's host `periapt agent run`
/// takes it from a file (`--token-file`) or from standard input (`--token -`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt agent-token worker-1 --output worker-1.token\n  \
                  periapt agent-token worker-1 --expires 10m")]
pub(crate) struct AgentToken {
    /// The agent's name
    name: AgentName,
    /// The time for which the token can be used
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration::parse)]
    expires: Duration,
    /// Let an agent of this name join that has joined before: the earlier one is refused from then on
    #[arg(long)]
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
        let terms = JoinTerms { valid_for: self.expires, again: self.again };
        let joining = admit(&controller.client, &self.name, authority, terms).await?;
        let text = format!("{}\n", joining.reveal());
        match &self.output {
            Some(path) => write_file(path, &text, Readers::Owner).map_err(with_source)?,
            None => Sink::new(None, context.color)?.write(text)?,
        }
        let until = Timestamp::now().checked_add(self.expires).map(to_the_second).unwrap_or_default();
        context.say(format_args!("Agent \"{}\" may join once, until {until}", self.name));
        Ok(())
    }
}
