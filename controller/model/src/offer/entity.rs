//! Offers, and applications of other models as this one knows them.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, EndpointName, ModelUuid, OfferUuid, Timestamp,
    offer::{OfferUrl, RemoteEndpoint},
    status::Life,
};
use serde::{Deserialize, Serialize};

/// Endpoints of an application of this model that other models may relate to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Offer {
    /// Its name, unique among the model's offers.
    pub name: ApplicationName,
    /// For ever: one that is made again under the same name is another.
    pub uuid: OfferUuid,
    /// What is offered.
    pub application: ApplicationName,
    /// Which of its endpoints; the charm says what they are.
    pub endpoints: BTreeSet<EndpointName>,
    /// For people.
    pub description: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An application of another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteApplication {
    /// Its name here, unique among this model's applications of both kinds.
    pub name: ApplicationName,
    /// Alive or dying.
    pub life: Life,
    /// What it stands for.
    pub source: RemoteSource,
    /// What it can be related by.
    pub endpoints: BTreeMap<EndpointName, RemoteEndpoint>,
    /// When it came to be known here.
    pub created_at: Timestamp,
}

/// What a remote application stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteSource {
    /// An offer that this model consumes (SAAS).
    Offer {
        /// As it was named when it was consumed, with its owner.
        url: OfferUrl,
        /// Which: another one of that name is not meant.
        offer: OfferUuid,
        /// The offering model.
        model: ModelUuid,
    },
    /// An application that consumes an offer of this model. It is here as long as it has relations.
    Consumer {
        /// Its model.
        model: ModelUuid,
        /// Its name there.
        application: ApplicationName,
    },
}
