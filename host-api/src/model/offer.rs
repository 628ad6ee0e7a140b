//! Offers: endpoints of an application that other models may relate to (`hook-model.md` 2.2, 7.8).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, EndpointName, InterfaceName, ModelName, ModelUuid, OfferUuid, RelationId, Timestamp,
    UserName,
    network::Subnet,
    relation::{Endpoint, Role},
    status::RelationState,
};

/// The longest description of an offer, and the longest reason for a suspension, in bytes: people read them in tables.
pub const MAX_OFFER_TEXT: usize = 1_000;

/// How an offer is named from outside its model: `[USER/]MODEL.OFFER`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct OfferUrl {
    /// Whose model it is; none: the caller's own.
    pub owner: Option<UserName>,
    /// The offering model.
    pub model: ModelName,
    /// The offer's name in it.
    pub offer: ApplicationName,
}

/// A text that names no offer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid offer URL {text:?}: {reason}; write [USER/]MODEL.OFFER")]
pub struct OfferUrlError {
    text: String,
    reason: String,
}

impl FromStr for OfferUrl {
    type Err = OfferUrlError;

    fn from_str(text: &str) -> Result<Self, OfferUrlError> {
        let wrong = |reason: String| OfferUrlError { text: text.chars().take(200).collect(), reason };
        let (owner, rest) = match text.split_once('/') {
            Some((owner, rest)) => {
                (Some(UserName::new(owner).map_err(|error| wrong(error.to_string()))?), rest)
            }
            None => (None, text),
        };
        let (model, offer) = rest.split_once('.').ok_or_else(|| wrong("it names no model".to_owned()))?;
        Ok(Self {
            owner,
            model: ModelName::new(model).map_err(|error| wrong(error.to_string()))?,
            offer: ApplicationName::new(offer).map_err(|error| wrong(error.to_string()))?,
        })
    }
}

impl TryFrom<String> for OfferUrl {
    type Error = OfferUrlError;
    fn try_from(text: String) -> Result<Self, OfferUrlError> {
        text.parse()
    }
}

impl From<OfferUrl> for String {
    fn from(url: OfferUrl) -> Self {
        url.to_string()
    }
}

impl fmt::Display for OfferUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(owner) = &self.owner {
            write!(f, "{owner}/")?;
        }
        write!(f, "{}.{}", self.model, self.offer)
    }
}

/// What a user may do with an offer (`hook-model.md` 7.8); each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OfferAccess {
    /// Find it.
    Read,
    /// Relate applications of other models to it.
    Consume,
    /// All, its removal included.
    Admin,
}

impl fmt::Display for OfferAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Consume => "consume",
            Self::Admin => "admin",
        })
    }
}

/// An endpoint of an application in another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteEndpoint {
    /// Its interface.
    pub interface: InterfaceName,
    /// Its role.
    pub role: Role,
}

impl RemoteEndpoint {
    /// The endpoint under an application's name.
    pub fn of(&self, application: &ApplicationName, name: &EndpointName) -> Endpoint {
        Endpoint {
            application: application.clone(),
            name: name.clone(),
            role: self.role,
            interface: self.interface.clone(),
        }
    }
}

/// An offer, as whoever may see it is shown it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferDetails {
    /// Its name in its model.
    pub name: ApplicationName,
    /// For ever; an offer that is made again under the same name has another.
    pub uuid: OfferUuid,
    /// How other models name it.
    pub url: OfferUrl,
    /// What is offered.
    pub application: ApplicationName,
    /// `local:NAME-REV` of its charm.
    pub charm: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// By name.
    pub endpoints: BTreeMap<EndpointName, RemoteEndpoint>,
    /// What the caller may do with it.
    pub access: OfferAccess,
    /// The relations with it, for who administers it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<OfferConnection>,
}

/// A relation with an offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferConnection {
    /// The consuming model.
    pub source_model_uuid: ModelUuid,
    /// Its owner.
    pub username: UserName,
    /// The relation's number in the offering model.
    pub relation_id: RelationId,
    /// The offered endpoint.
    pub endpoint: EndpointName,
    /// How the relation is.
    pub status: OfferConnectionStatus,
    /// Where the consuming units come from.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ingress_subnets: BTreeSet<Subnet>,
}

/// How a relation with an offer is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferConnectionStatus {
    /// `joining`, `joined`, ...
    pub current: RelationState,
    /// Why it is suspended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_named_with_and_without_their_owner() {
        for text in ["admin/prod.mysql", "prod.mysql", "jane.doe/prod.hosted-mysql"] {
            assert_eq!(text.parse::<OfferUrl>().unwrap().to_string(), text);
        }
        for (text, reason) in [
            ("mysql", "it names no model"),
            ("/prod.mysql", "invalid user name"),
            ("admin/.mysql", "invalid model name"),
            ("admin/prod.", "invalid application name"),
            ("a/b/prod.mysql", "invalid model name"),
        ] {
            let error = text.parse::<OfferUrl>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.ends_with("write [USER/]MODEL.OFFER"), "{error}");
        }
    }
}
