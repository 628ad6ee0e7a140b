//! The users who may consume an offer, as Juju prints them.

use std::collections::BTreeMap;

use periapt_host_api::offer::OfferAccess;
use serde::Serialize;

use crate::print::identity::USER;

/// The users who may consume an offer, by name.
pub(super) type Consumers = BTreeMap<&'static str, Consumer>;

/// A user who may consume an offer, as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Consumer {
    display_name: &'static str,
    access: OfferAccess,
}

/// Returns the one user, with the caller's access.
pub(super) fn consumers(access: OfferAccess) -> Consumers {
    BTreeMap::from([(USER, Consumer { display_name: USER, access })])
}
