//! Network information of a binding (`docs/hook-model.md` 5.7).

use periapt_host_api::{
    RelationId,
    network::{NetworkInfo, egress_of, network_info},
};

use crate::{
    CallError,
    context::{HookContext, HookRun},
};

/// The typed interface: `network`.
impl HookContext {
    /// Returns the addresses of a binding.
    pub fn network_get(
        &mut self,
        binding: &str,
        relation: Option<RelationId>,
    ) -> Result<NetworkInfo, CallError> {
        self.call("network.get", (binding, relation), |run| run.network(binding, relation))
    }
}

impl HookRun {
    /// Returns the addresses of a binding: an endpoint or an extra binding. Refuses a relation of another
    /// endpoint.
    pub(crate) fn network(
        &self,
        binding: &str,
        relation: Option<RelationId>,
    ) -> Result<NetworkInfo, CallError> {
        if !self.snapshot.meta().has_binding(binding) {
            return Err(CallError::NotFound(format!("no network config found for binding {binding:?}")));
        }
        let (machine, model) = (self.snapshot.machine(), self.snapshot.model());
        let mut egress = model.config.egress_subnets.as_slice();
        if let Some(relation) = relation {
            let endpoint = &self.relation(relation)?.endpoint;
            if endpoint.as_str() != binding {
                let text =
                    format!("relation {relation} is of endpoint {:?}, not of {binding:?}", endpoint.as_str());
                return Err(CallError::invalid(text));
            }
            let of_relation = self.snapshot.view.relations.get(&relation).map(|view| view.egress.as_slice());
            egress = egress_of(of_relation.unwrap_or_default(), &model.config);
        }
        let space = self.snapshot.application().bindings.space_of(binding);
        let info = network_info(machine.network(), &model.spaces, egress, space);
        match info.bind_addresses.is_empty() && info.ingress_addresses.is_empty() {
            true => Err(CallError::NotReady(format!(
                "machine \"{}\" has no devices in space {space:?}",
                machine.id
            ))),
            false => Ok(info),
        }
    }
}
