//! The users with access to an offer, as Juju prints them.

use std::collections::BTreeMap;

use periapt_host_api::{
    UserName,
    offer::{OfferAccess, OfferUser},
};
use serde::Serialize;

/// The users with access to an offer, by name.
pub(super) type Consumers = BTreeMap<String, Consumer>;

/// A user with access to an offer, as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Consumer {
    display_name: String,
    access: OfferAccess,
}

/// Returns the users as Juju prints them.
pub(super) fn consumers(users: BTreeMap<UserName, OfferUser>) -> Consumers {
    let shown = |(name, user): (UserName, OfferUser)| {
        (name.to_string(), Consumer { display_name: user.display_name, access: user.access })
    };
    users.into_iter().map(shown).collect()
}
