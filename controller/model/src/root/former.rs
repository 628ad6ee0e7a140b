//! The parts of a state that the views of one model are made of. Former states of a model are kept by them,
//! so that the writes in one model push out no former state of another one.

use std::{collections::BTreeSet, sync::Arc};

use imbl::OrdMap;
use periapt_host_api::{AgentName, Digest, ModelUuid, Revision};

use super::{ModelState, Root};
use crate::entity::{Agent, Charm};

/// The agents and charms, which views show and which belong to no model.
#[derive(Debug, Clone, Default)]
pub struct SharedParts {
    agents: OrdMap<AgentName, Arc<Agent>>,
    charms: OrdMap<Digest, Arc<Charm>>,
}

impl SharedParts {
    /// Returns true if both are of the same agents and charms. Cheap: it compares pointers. A `false` may be
    /// wrong, a `true` never is.
    pub fn are_the_same(&self, other: &Self) -> bool {
        self.agents.ptr_eq(&other.agents) && self.charms.ptr_eq(&other.charms)
    }
}

impl Root {
    /// Returns the parts that views of all models share.
    pub fn shared_parts(&self) -> SharedParts {
        SharedParts { agents: self.agents.clone(), charms: self.charms.clone() }
    }

    /// Returns the models whose state differs in a later state, in which these models were written since. The
    /// controller's settings are in the states of all models.
    pub fn replaced_models(&self, newer: &Self, written: Vec<ModelUuid>) -> BTreeSet<ModelUuid> {
        let same_controller = match (&self.controller, &newer.controller) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        let candidates = match same_controller {
            true => written,
            false => self.models.keys().chain(newer.models.keys()).copied().collect(),
        };
        let differs = |uuid: &ModelUuid| match (self.models.get(uuid), newer.models.get(uuid)) {
            (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
            (None, None) => false,
            _ => true,
        };
        candidates.into_iter().filter(differs).collect()
    }

    /// Returns a state of which the views of one model are those of the state that the parts come from.
    pub fn of_one_model(
        shared: SharedParts,
        uuid: ModelUuid,
        state: Option<Arc<ModelState>>,
        revision: Revision,
    ) -> Self {
        let models = state.map(|state| (uuid, state)).into_iter().collect();
        Self { revision, agents: shared.agents, charms: shared.charms, models, ..Self::default() }
    }
}
