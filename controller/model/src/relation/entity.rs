//! Relations, their scopes and bags.

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, ModelUuid, OfferUuid, RelationId, Timestamp, UnitName,
    network::Subnet,
    offer::OfferUrl,
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
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspended_reason: String,
    /// Whether a leader of either side has entered.
    pub progress: RelationProgress,
    /// What it has to do with another model; none: both ends stand in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross: Option<Cross>,
    /// Where the traffic of this model's units comes from, if not from where the model says; only of a consumer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Subnet>,
    /// Since when its state is what it is; none: since it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_since: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A relation across models stands in both, in each under a number of its own; each model has a copy of what the
/// other's units do in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cross {
    /// Which relation it is, in both models.
    pub id: CrossId,
    /// The offer that is consumed.
    pub offer: OfferUuid,
    /// The name here of the application at the other end.
    pub remote: ApplicationName,
    /// Which side this model is.
    pub side: CrossSide,
}

/// What names a relation across models: the consuming model, in which it was made, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CrossId {
    /// The consuming model.
    pub consumer: ModelUuid,
    /// The relation's number in it.
    pub relation: RelationId,
}

/// The two sides of a relation across models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossSide {
    /// This model consumes.
    Consumer {
        /// The offering model.
        model: ModelUuid,
        /// The offer, as it was consumed.
        url: OfferUrl,
        /// Whether the relation was seen in the offering model. One that was, and is no longer there, was removed there;
        /// one that was not has yet to be made there.
        met: bool,
    },
    /// This model offers.
    Offerer {
        /// Where the consuming units come from.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        ingress: BTreeSet<Subnet>,
    },
}

impl Cross {
    /// The model at the other end.
    pub fn other_model(&self) -> ModelUuid {
        match &self.side {
            CrossSide::Consumer { model, .. } => *model,
            CrossSide::Offerer { .. } => self.id.consumer,
        }
    }
}

/// The progress of an alive relation (`docs/hook-model.md` 2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationProgress {
    /// No leader has entered its scope yet, or since all have left one that was suspended.
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
            (Life::Alive, true, RelationProgress::Joined) => RelationState::Suspending,
            (Life::Alive, true, RelationProgress::Joining) => RelationState::Suspended,
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

    /// Whether a unit of this name belongs to the application of another model.
    pub fn is_remote(&self, application: &ApplicationName) -> bool {
        self.cross.as_ref().is_some_and(|cross| cross.remote == *application)
    }

    /// Its end in this model, of a relation across models.
    pub fn own_end(&self) -> Option<&Endpoint> {
        self.endpoints.iter().find(|end| !self.is_remote(&end.application))
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
    /// In a relation of container scope, the principal whose container the bag's unit lives in: the unit itself, or the
    /// one that it is a subordinate of. It tells who may read the bag of a unit that is gone. None for any
    /// other bag, and for one that an earlier release wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<UnitName>,
}
