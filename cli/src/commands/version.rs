//! `version`

use clap::Args;

use crate::{context::Context, error::Result, output::Sink};

/// Print this program's version
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Also the engine's that hooks run in
    #[arg(long)]
    all: bool,
}

impl Version {
    pub(crate) fn run(self, context: &Context) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let text = match self.all {
            true => format!("version: {version}\nengine: {}\n", periapt_sandbox::engine_version()),
            false => format!("{version}\n"),
        };
        Sink::new(None, context.color)?.write(&text)
    }
}
