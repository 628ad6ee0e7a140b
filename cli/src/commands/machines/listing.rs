//! Machines as Juju prints them.

use std::collections::BTreeMap;

use periapt_host_api::status::MachineStatus;
use serde::Serialize;

/// The machines with their model, as Juju prints them.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    pub(crate) model: String,
    pub(crate) machines: BTreeMap<String, MachineStatus>,
}
