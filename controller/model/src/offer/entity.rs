//! The entities of offers and remote applications.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, EndpointName, ModelUuid, OfferUuid, Timestamp, UserName,
    offer::{OfferUrl, RemoteEndpoint},
    status::Life,
};
use serde::{Deserialize, Serialize};

use crate::user::entity::OfferGrant;

/// An offer: endpoints of an application of this model that other models may relate to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Offer {
    /// The offer's name, unique in the model.
    pub name: ApplicationName,
    /// The offer's id. A new offer with the same name has another one.
    pub uuid: OfferUuid,
    /// The offered application.
    pub application: ApplicationName,
    /// The names of the offered endpoints. The charm defines their roles and interfaces.
    pub endpoints: BTreeSet<EndpointName>,
    /// The description for people.
    pub description: String,
    /// The time of the creation.
    pub created_at: Timestamp,
    /// The users who were granted access.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<UserName, OfferGrant>,
}

/// An application of another model, as this model knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteApplication {
    /// The name in this model, unique among its applications and remote applications.
    pub name: ApplicationName,
    /// Alive or dying.
    pub life: Life,
    /// The offer or consumer behind it.
    pub source: RemoteSource,
    /// The endpoints for relations.
    pub endpoints: BTreeMap<EndpointName, RemoteEndpoint>,
    /// The time of the creation in this model.
    pub created_at: Timestamp,
}

/// The offer or consumer behind a remote application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteSource {
    /// An offer that this model consumes (SAAS).
    Offer {
        /// The URL, with the owner, as it was when the offer was consumed.
        url: OfferUrl,
        /// The id of the offer. Another offer with the same name is not this one.
        offer: OfferUuid,
        /// The offering model.
        model: ModelUuid,
    },
    /// An application that consumes an offer of this model. It exists while it has relations.
    Consumer {
        /// The consuming model.
        model: ModelUuid,
        /// The application's name in the consuming model.
        application: ApplicationName,
    },
}
