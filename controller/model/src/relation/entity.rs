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
    /// The relation's number.
    pub id: RelationId,
    /// One endpoint for a peer relation, otherwise two, the provider first.
    pub endpoints: Vec<Endpoint>,
    /// The scope: it bounds which units see each other.
    pub scope: Scope,
    /// The relation's life. Dying: its units leave. Dead: it is removed, and kept only for units that have yet to run
    /// their departed and broken hooks with its bags.
    pub life: Life,
    /// True if an operator suspended the relation.
    pub suspended: bool,
    /// The operator's reason for the suspension.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspended_reason: String,
    /// The progress: joined once a leader of either side has entered.
    pub progress: RelationProgress,
    /// The cross-model part; none if both ends are in this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross: Option<CrossModelPart>,
    /// The subnets that traffic from this model's units comes from, if they differ from the model's. Set on consumers
    /// only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Subnet>,
    /// The time of the last change of state; none if there was no change since the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_since: Option<Timestamp>,
    /// The time of the creation.
    pub created_at: Timestamp,
}

/// The cross-model part of a relation. Both models have the relation, each under its own number, and each model
/// copies what the other model's units do in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CrossModelPart {
    /// The id of the relation, the same in both models.
    pub id: CrossModelId,
    /// The consumed offer.
    pub offer: OfferUuid,
    /// The name of the other model's application in this model.
    pub remote: ApplicationName,
    /// The side of this model.
    pub side: CrossModelSide,
}

/// The id of a cross-model relation: the consuming model, which created it, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CrossModelId {
    /// The consuming model.
    pub consumer: ModelUuid,
    /// The relation's number in it.
    pub relation: RelationId,
}

/// The side of a model in a cross-model relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossModelSide {
    /// This model consumes the offer.
    Consumer {
        /// The offering model.
        model: ModelUuid,
        /// The offer's URL, as the operator consumed it.
        url: OfferUrl,
        /// True once the relation was seen in the offering model. If it is gone after that, the offering model
        /// removed it; before that, the offering model has yet to create it.
        met: bool,
    },
    /// This model has the offer.
    Offerer {
        /// The subnets that traffic from the consuming units comes from.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        ingress: BTreeSet<Subnet>,
    },
}

impl CrossModelPart {
    /// Returns the model at the other end.
    pub fn other_model(&self) -> ModelUuid {
        match &self.side {
            CrossModelSide::Consumer { model, .. } => *model,
            CrossModelSide::Offerer { .. } => self.id.consumer,
        }
    }
}

/// The progress of an alive relation (`docs/hook-model.md` 2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationProgress {
    /// No leader has entered the scope yet, or all units have left a suspended relation.
    #[default]
    Joining,
    /// The leader of either side has entered.
    Joined,
}

impl Relation {
    /// Returns the state that status and views show.
    pub fn state(&self) -> RelationState {
        match (self.life, self.suspended, self.progress) {
            (Life::Dying | Life::Dead, ..) => RelationState::Dying,
            (Life::Alive, true, RelationProgress::Joined) => RelationState::Suspending,
            (Life::Alive, true, RelationProgress::Joining) => RelationState::Suspended,
            (Life::Alive, false, RelationProgress::Joining) => RelationState::Joining,
            (Life::Alive, false, RelationProgress::Joined) => RelationState::Joined,
        }
    }

    /// Returns the endpoint of an application; a peer relation has only one.
    pub fn end_of(&self, application: &ApplicationName) -> Option<&Endpoint> {
        self.endpoints.iter().find(|end| end.application == *application)
    }

    /// Returns the endpoint opposite to an application; in a peer relation, the application's own.
    pub fn other_end(&self, application: &ApplicationName) -> Option<&Endpoint> {
        match self.endpoints.as_slice() {
            [only] => Some(only),
            ends => ends.iter().find(|end| end.application != *application),
        }
    }

    /// Returns true if the application belongs to another model.
    pub fn is_remote(&self, application: &ApplicationName) -> bool {
        self.cross.as_ref().is_some_and(|cross| cross.remote == *application)
    }

    /// Returns the endpoint in this model of a cross-model relation.
    pub fn own_end(&self) -> Option<&Endpoint> {
        self.endpoints.iter().find(|end| !self.is_remote(&end.application))
    }

    /// Returns true if this is a peer relation.
    pub fn is_peer(&self) -> bool {
        self.endpoints.len() == 1
    }

    /// Returns the relation's name for messages, the requirer first: `wordpress:db mysql:server`.
    pub fn describe(&self) -> String {
        let ends: Vec<String> = self.endpoints.iter().rev().map(ToString::to_string).collect();
        ends.join(" ")
    }
}

/// The membership of a unit in a relation's scope. It exists only while the unit is in scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Member {
    /// The relation.
    pub relation: RelationId,
    /// The unit.
    pub unit: UnitName,
    /// The state of the membership: the other units treat a departing unit as gone.
    pub membership: Membership,
}

/// A bag. It outlives its unit's membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bag {
    /// The relation and the owner of the bag.
    pub key: BagKey,
    /// The settings.
    pub settings: Settings,
    /// The version. It rises with each change of the settings; 0 means never written.
    pub version: u64,
    /// In a relation of container scope, the principal of the bag's unit, or the unit itself if it is the principal.
    /// It decides which units may read the bag after its unit is gone. None for other bags, and for bags
    /// that an earlier release wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<UnitName>,
}
