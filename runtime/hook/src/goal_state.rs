//! Goal state: the units that the operator wants, here and at the other ends, with their statuses (`docs/hook-model.md`
//! 5.14).

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, EndpointName, Timestamp,
    status::Life,
    view::{RelationView, RemoteEnd, UnitOutline},
};
use serde::{Deserialize, Serialize};

use crate::context::{HookContext, HookRun};

/// The wanted units with their statuses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GoalState {
    /// The units of the own application, this one included.
    pub units: BTreeMap<String, GoalStatus>,
    /// By endpoint, the applications at the other ends with the relation's status, and their units.
    pub relations: BTreeMap<EndpointName, BTreeMap<String, GoalStatus>>,
}

/// The status of a unit or a relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GoalStatus {
    /// A unit's workload status, a relation's state, or `dying`.
    pub status: String,
    /// The time of the last change, in UTC: `2006-01-02 15:04:05Z`.
    pub since: String,
}

impl GoalStatus {
    fn new(status: &str, since: Timestamp) -> Self {
        Self { status: status.to_owned(), since: since.strftime("%Y-%m-%d %H:%M:%SZ").to_string() }
    }
}

/// The typed interface: `goal-state`.
impl HookContext {
    /// Returns the units that the operator wants, here and at the other ends, with their statuses.
    pub fn goal_state(&mut self) -> GoalState {
        self.call("goal-state.get", (), |run| run.goal_state())
    }
}

impl HookRun {
    /// Returns the goal state. Peers are among the units, so it leaves peer relations out.
    pub(crate) fn goal_state(&self) -> GoalState {
        let own = self.snapshot.unit.application();
        let mut goal = GoalState { units: self.goal_units(own).collect(), ..GoalState::default() };
        let relations = self.snapshot.view.relations.values();
        for relation in relations.filter(|relation| !relation.is_peer() && relation.life != Life::Dead) {
            let (Some(end), Some(other)) = (relation.end_of(own), relation.other_end(own)) else { continue };
            let shown = match &relation.remote {
                None => other.application.to_string(),
                Some(RemoteEnd { offer: Some(url), .. }) => url.to_string(),
                // Goal state hides the consumers of an own offer.
                Some(RemoteEnd { offer: None, .. }) => continue,
            };
            let related = goal.relations.entry(end.name.clone()).or_default();
            related.insert(shown, of_relation(relation));
            related.extend(self.goal_units(&other.application));
        }
        goal
    }

    fn goal_units(&self, application: &ApplicationName) -> impl Iterator<Item = (String, GoalStatus)> {
        let wanted =
            move |unit: &&UnitOutline| unit.name.application() == application && unit.life != Life::Dead;
        self.snapshot
            .view
            .outlines
            .values()
            .filter(wanted)
            .map(|unit| (unit.name.to_string(), self.of_unit(unit)))
    }

    fn of_unit(&self, unit: &UnitOutline) -> GoalStatus {
        // This hook's own status has left it already, and counts for the own unit.
        let own = (unit.name == self.snapshot.unit).then(|| self.unit_status());
        let shown = own.as_ref().unwrap_or(&unit.workload_status);
        match unit.life {
            Life::Alive => GoalStatus::new(shown.status.as_str(), shown.since),
            Life::Dying | Life::Dead => GoalStatus::new("dying", shown.since),
        }
    }
}

fn of_relation(relation: &RelationView) -> GoalStatus {
    GoalStatus::new(relation.state.as_str(), relation.state_since)
}
