//! `expose` and `unexpose`.

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command};

use crate::{
    context::{Context, ModelArg},
    error::Result,
};

/// Make an application's open ports reachable from outside
#[derive(Debug, Args)]
pub(crate) struct Expose {
    /// The application
    application: ApplicationName,
    #[command(flatten)]
    model: ModelArg,
}

/// Take back what expose did
#[derive(Debug, Args)]
pub(crate) struct Unexpose {
    /// The application
    application: ApplicationName,
    #[command(flatten)]
    model: ModelArg,
}

impl Expose {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let command = Command::Expose { application: self.application };
        context.model(&self.model)?.command(command).await.map(drop)
    }
}

impl Unexpose {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let command = Command::Unexpose { application: self.application };
        context.model(&self.model)?.command(command).await.map(drop)
    }
}
