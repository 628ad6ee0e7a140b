//! Offers, and applications of other models.

use std::collections::BTreeMap;

use periapt_host_api::{
    ModelUuid, OfferUuid,
    offer::{OfferAccess, RemoteEndpoint},
    relation::Role,
    status::Life,
};
use periapt_model::entity::{Offer, OfferGrant, RemoteApplication, RemoteSource};
use uuid::Uuid;

use super::{Named, awkward_text, every, parse, time};

/// The model at the other end.
pub(super) const OTHER_MODEL: ModelUuid =
    ModelUuid(Uuid::from_u128(0x0190_a7c4_5b1e_7d30_8c52_4f6e_9a01_b2c4));

pub(crate) fn offers() -> Named<Offer> {
    let offer = Offer {
        name: parse("hosted-mysql"),
        uuid: OfferUuid(OTHER_MODEL.0),
        application: parse("mysql"),
        endpoints: [parse("server"), parse("logs")].into(),
        description: awkward_text(),
        created_at: time(50),
        grants: BTreeMap::new(),
    };
    let grant = OfferGrant { user_uuid: Uuid::from_u128(7), access: OfferAccess::Consume };
    let granted = Offer { grants: [(parse("jane"), grant)].into(), ..offer.clone() };
    vec![("hosted", offer), ("granted", granted)]
}

pub(crate) fn remote_applications() -> Named<RemoteApplication> {
    let sources = every!(RemoteSource {
        "offer": RemoteSource::Offer { .. } => RemoteSource::Offer {
            url: parse("admin/prod.mysql"),
            offer: OfferUuid(OTHER_MODEL.0),
            model: OTHER_MODEL,
        },
        "consumer": RemoteSource::Consumer { .. } => RemoteSource::Consumer {
            model: OTHER_MODEL,
            application: parse("wordpress"),
        },
    });
    let remote = |source| RemoteApplication {
        name: parse("mysql"),
        life: Life::Dying,
        source,
        endpoints: [(parse("server"), RemoteEndpoint { interface: parse("my_sql-2"), role: Role::Provider })]
            .into(),
        created_at: time(51),
    };
    sources.into_iter().map(|(name, source)| (name, remote(source))).collect()
}
