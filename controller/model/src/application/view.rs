//! The views of applications: those of the runner's units.

use std::sync::Arc;

use periapt_host_api::{
    hash,
    resource::ResourceRevision,
    view::{ApplicationView, ResourceView},
};

use crate::{
    entity::{Application, AttachedResource},
    root::ModelState,
    view::{HasView, RunnerEntities},
};

impl HasView for Application {
    type View = ApplicationView;

    fn beside<'a>(own: &RunnerEntities<'a>) -> impl Iterator<Item = &'a Arc<Self>> {
        own.applications().filter_map(|name| own.state.application(name))
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<ApplicationView> {
        if !own.has_units_of(&self.name) {
            return None;
        }
        let (budgets, workload_limits) = self.budgets.clone().split();
        Some(ApplicationView {
            name: self.name.clone(),
            life: self.life,
            charm: self.charm,
            force_charm: self.force_charm,
            config: self.config.clone(),
            config_hash: self.config_hash.clone(),
            settings_version: self.settings_version,
            trust_hash: self.trust_hash.clone(),
            trust: self.trust,
            bindings: self.bindings.clone(),
            bindings_hash: bindings_hash(own.state, self),
            leader: self.leader.clone(),
            leader_settings: self.leader_settings.clone(),
            leader_settings_version: self.leader_settings_version,
            update_status_interval: self.update_status_interval,
            status: self.status.clone(),
            workload_egress: self.workload_egress.clone(),
            workload_crash: self.workload_crash,
            exposed: self.exposed,
            budgets,
            workload_limits,
            resources: self
                .resources
                .iter()
                .map(|(name, attached)| (name.clone(), resource(attached)))
                .collect(),
        })
    }
}

fn resource(attached: &AttachedResource) -> ResourceView {
    let ResourceRevision { revision, digest, size, .. } = attached.current;
    ResourceView { revision, digest, size }
}

/// Returns a hash that changes when the addresses of a binding change, even if the host's stay the same (D03).
fn bindings_hash(state: &ModelState, application: &Application) -> String {
    let (bindings, spaces) = (&application.bindings, &state.model().spaces);
    let egress = &state.config().egress_subnets;
    match (bindings.is_empty() && spaces.is_empty(), egress.is_empty()) {
        (true, true) => String::new(),
        (false, true) => hash::of_value(&(bindings, spaces)),
        (_, false) => hash::of_value(&(bindings, spaces, egress)),
    }
}
