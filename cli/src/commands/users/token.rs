//! `add-token`

use std::time::Duration;

use clap::Args;
use periapt_host_api::{
    access::ModelAccess,
    user::{NewApiToken, TokenScope},
};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg, ModelRef},
    error::Result,
    output::{Sink, Text},
    parse::duration,
};

/// Make an API token for a program, such as a pipeline
///
/// The token is printed once. It gives at most the access that its user has at each moment, and no more than its
/// scope; it manages no users and no sessions. `remove-session` revokes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt add-token ci --access write --models blog,shop --lifetime 720h
  curl -H \"Authorization: Bearer $(cat token)\" ...")]
pub(crate) struct AddToken {
    /// A name for people, unique among the user's tokens
    name: String,
    /// The highest access to models: read, write or admin
    #[arg(long, value_name = "LEVEL", default_value = "read")]
    access: ModelAccess,
    /// The models, joined by commas; by default all models of the user
    #[arg(long, value_name = "[USER/]MODEL,...", value_delimiter = ',')]
    models: Vec<ModelRef>,
    /// The time until the token ends
    #[arg(long, value_name = "DURATION", default_value = "2160h", value_parser = duration::parse)]
    lifetime: Duration,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for AddToken {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let mut models = Vec::with_capacity(self.models.len());
        for model in &self.models {
            models.push(controller.client.model(&model.model).await?.uuid);
        }
        let token = NewApiToken {
            name: self.name,
            scope: TokenScope { access: self.access, models },
            lifetime_seconds: self.lifetime.as_secs(),
        };
        let issued = controller.client.make_token(&token).await?;
        Sink::new(None, context.color)?.write(Text::value(format!("{}\n", issued.token.reveal())))
    }
}
