//! The spaces of a model, with `alpha` for the subnets of its hosts that are in no space.

use periapt_host_api::{
    SpaceName,
    api::SpaceList,
    network::{ALPHA, Subnet},
};

use crate::root::{ModelState, Root};

/// Returns all spaces with their subnets.
pub fn spaces(root: &Root, state: &ModelState) -> SpaceList {
    let named = &state.model().spaces;
    let mut list = SpaceList { spaces: named.0.clone() };
    if let Ok(alpha) = SpaceName::new(ALPHA) {
        let hosts = root.agents().flat_map(|agent| &agent.host.interfaces);
        let addresses = hosts.flat_map(|interface| &interface.addresses);
        let rest = addresses.filter(|at| named.of(at.address) == ALPHA).map(|at| at.subnet);
        list.spaces.insert(alpha, rest.collect::<std::collections::BTreeSet<Subnet>>());
    }
    list
}
