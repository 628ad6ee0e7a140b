//! The interface `goal-state`.

use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::goal_state::{GoalRelation, GoalState, GoalStatus},
    host_call,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "get", |context, _, (): ()| GoalState::from(context.goal_state()))
}

impl From<periapt_hook::GoalState> for GoalState {
    fn from(goal: periapt_hook::GoalState) -> Self {
        let shown = |(name, status): (String, periapt_hook::GoalStatus)| {
            (name, GoalStatus { status: status.status, since: status.since })
        };
        let relation =
            |(endpoint, related): (periapt_host_api::EndpointName, std::collections::BTreeMap<_, _>)| {
                let (units, applications) =
                    related.into_iter().map(shown).partition(|(name, _)| name.contains('/'));
                GoalRelation { endpoint: endpoint.to_string(), applications, units }
            };
        Self {
            units: goal.units.into_iter().map(shown).collect(),
            relations: goal.relations.into_iter().map(relation).collect(),
        }
    }
}
