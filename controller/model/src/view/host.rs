//! The host that an agent's machines take their addresses from.

use periapt_host_api::{AgentName, agent::Register, hash};

use crate::root::Root;

/// An agent's host.
pub(crate) struct Host<'a> {
    /// The last report of the agent; none if there was none.
    pub(crate) reported: Option<&'a Register>,
    /// The hash of the addresses, by which units notice that they changed.
    pub(crate) addresses_hash: String,
}

impl<'a> Host<'a> {
    pub(super) fn of(root: &'a Root, agent: &AgentName) -> Self {
        let reported = root.agent(agent).map(|agent| &agent.host);
        let addresses_hash = match reported.filter(|host| !host.interfaces.is_empty()) {
            Some(host) => hash::of_value(&(&host.addresses, &host.interfaces)),
            // The hash of releases whose agents reported no interfaces.
            None => hash::of_value(&reported.map(|host| &host.addresses)),
        };
        Self { reported, addresses_hash }
    }
}
