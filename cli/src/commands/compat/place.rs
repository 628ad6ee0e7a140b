//! Where Juju's clients have clouds and credentials kept.

use clap::Args;

use crate::data::ControllerName;

/// Where a cloud or a credential is kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// By this client; so if neither is said
    #[arg(long)]
    client: bool,
    /// By this controller
    #[arg(short, long, value_name = "CONTROLLER")]
    pub(crate) controller: Option<ControllerName>,
}

impl PlaceArgs {
    /// Whether this client is meant, alone or with a controller.
    pub(crate) fn of_client(&self) -> bool {
        self.client || self.controller.is_none()
    }
}
