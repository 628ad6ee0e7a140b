//! Relations, their scopes and bags.

use periapt_host_api::{
    ApplicationName, RelationId, Timestamp, UnitName,
    relation::{BagKey, Endpoint, Scope, Settings},
    status::{Life, RelationState},
    view::Membership,
};
use serde::{Deserialize, Serialize};

/// A relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Relation {
    /// Its number.
    pub id: RelationId,
    /// One end for peers, else two, the provider first.
    pub endpoints: Vec<Endpoint>,
    /// Who sees whom.
    pub scope: Scope,
    /// Alive; dying: its units leave; dead: removed by force, and kept for the units that have yet to run
    /// their departed and broken hooks on its bags. A dead one exists for nobody else.
    pub life: Life,
    /// Suspended by an operator.
    pub suspended: bool,
    /// Whether a leader of either side has entered.
    pub progress: RelationProgress,
    /// Since when its state is what it is; none: since it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_since: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How far an alive relation has come (`hook-model.md` 2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationProgress {
    /// No leader has entered its scope yet.
    #[default]
    Joining,
    /// The leader of either side has.
    Joined,
}

impl Relation {
    /// How it is, as all are shown it.
    pub fn state(&self) -> RelationState {
        match (self.life, self.suspended, self.progress) {
            (Life::Dying | Life::Dead, ..) => RelationState::Dying,
            (Life::Alive, true, _) => RelationState::Suspended,
            (Life::Alive, false, RelationProgress::Joining) => RelationState::Joining,
            (Life::Alive, false, RelationProgress::Joined) => RelationState::Joined,
        }
    }

    /// The end of an application; a peer relation's only end.
    pub fn end_of(&self, application: &ApplicationName) -> Option<&Endpoint> {
        self.endpoints.iter().find(|end| end.application == *application)
    }

    /// The end that an application looks at: its own, in a peer relation.
    pub fn other_end(&self, application: &ApplicationName) -> Option<&Endpoint> {
        match self.endpoints.as_slice() {
            [only] => Some(only),
            ends => ends.iter().find(|end| end.application != *application),
        }
    }

    /// Whether it joins the units of one application.
    pub fn is_peer(&self) -> bool {
        self.endpoints.len() == 1
    }

    /// Its key from its endpoints, the requirer first, as messages name it: `wordpress:db mysql:server`.
    pub fn describe(&self) -> String {
        let ends: Vec<String> = self.endpoints.iter().rev().map(ToString::to_string).collect();
        ends.join(" ")
    }
}

/// A unit in a relation's scope. It is there exactly while the unit is in scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Member {
    /// The relation.
    pub relation: RelationId,
    /// The unit.
    pub unit: UnitName,
    /// Whether the others are still to see it.
    pub membership: Membership,
}

/// A bag. It outlives its unit's membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bag {
    /// Whose, in which relation.
    pub key: BagKey,
    /// Content.
    pub settings: Settings,
    /// Rises with each change of content; 0: never written.
    pub version: u64,
}
