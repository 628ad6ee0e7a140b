//! `controller-token`: lets a further controller join those of a log.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use periapt_host_api::Timestamp;
use periapt_transport::{Readers, write_file};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Result, with_source},
    join::admit_member,
    output::{Sink, to_the_second},
    parse::duration,
};

/// Make a token with which a further controller joins
///
/// For a controller that was bootstrapped with --log. The token is for one controller's name, can be used once, and
/// expires. Its holder is given all keys of the controllers: hand it over as a secret. It is printed, or written to a
/// file that only you can read. On the other host `periapt controller join` takes it, and calls this same controller.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt controller-token node-2 --output node-2.token\n  \
                  periapt controller-token node-3 --expires 10m")]
pub(crate) struct ControllerToken {
    /// The name of the further controller among those of the log
    name: String,
    /// The time for which the token can be used
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration::parse)]
    expires: Duration,
    /// The file for the token, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for ControllerToken {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let text = admit_member(&controller, &self.name, self.expires).await?;
        let text = format!("{}\n", text.reveal());
        match &self.output {
            Some(path) => write_file(path, &text, Readers::Owner).map_err(with_source)?,
            None => Sink::new(None, context.color)?.write(text)?,
        }
        let until = Timestamp::now().checked_add(self.expires).map(to_the_second).unwrap_or_default();
        context.say(format_args!("Controller \"{}\" may join once, until {until}", self.name));
        Ok(())
    }
}
