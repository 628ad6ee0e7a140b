//! `models`

use clap::Args;
use periapt_host_api::UserName;

use super::listed::{Listing, Uuids};
use crate::{
    commands::Verb,
    context::{Context, ControllerArg, models_by_name},
    error::Result,
    output::OutputArgs,
};

/// List a controller's models
#[derive(Debug, Args)]
#[command(visible_alias = "list-models")]
pub(crate) struct Models {
    /// Show their UUIDs, too
    #[arg(long)]
    uuid: bool,
    /// Only models of this user
    #[arg(long)]
    user: Option<UserName>,
    /// Accepted for compatibility with Juju; all models are always listed
    #[arg(long, hide = true)]
    all: bool,
    /// Accepted for compatibility with Juju; times are always exact
    #[arg(long, hide = true)]
    exact_time: bool,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

impl Verb for Models {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let mut models = models_by_name(&controller.client).await?;
        models.retain(|model| self.user.as_ref().is_none_or(|user| model.owner == *user));
        if models.is_empty() {
            context.say("no models yet: `periapt add-model NAME` makes one");
        }
        let info = controller.client.controller().await?;
        let listing = Listing::of(models, &controller, &info);
        let uuids = if self.uuid { Uuids::Shown } else { Uuids::LeftOut };
        self.output.print(context.color, &listing, |listing| listing.table(uuids))
    }
}
