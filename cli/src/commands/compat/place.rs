//! The place that stores clouds and credentials for Juju's clients.

use clap::Args;

use crate::data::ControllerName;

/// The place that stores a cloud or a credential.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Use this client, the default
    #[arg(long)]
    client: bool,
    /// Use this controller
    #[arg(short, long, value_name = "CONTROLLER")]
    pub(crate) controller: Option<ControllerName>,
}

impl PlaceArgs {
    /// Returns true if this client stores it, alone or with a controller.
    pub(crate) fn of_client(&self) -> bool {
        self.client || self.controller.is_none()
    }
}
