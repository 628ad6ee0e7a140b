//! Offers: endpoints of an application that other models may relate to (`docs/hook-model.md` 2.2, 7.8).

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

/// The longest description of an offer, and the longest reason of a suspension, in bytes: tables show them.
pub const MAX_OFFER_TEXT: usize = 1_000;

/// The URL of an offer: `[USER/]MODEL.OFFER`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct OfferUrl {
    /// The owner of the model. `None` means the caller.
    pub owner: Option<UserName>,
    /// The offering model.
    pub model: ModelName,
    /// The name of the offer in the model.
    pub offer: ApplicationName,
}

/// A text that is no URL of an offer.
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

/// The access levels of users to an offer (`docs/hook-model.md` 7.8); each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OfferAccess {
    /// May find the offer.
    Read,
    /// May relate applications of other models to the offer.
    Consume,
    /// May do all, including the removal of the offer.
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
    /// The endpoint's interface.
    pub interface: InterfaceName,
    /// The endpoint's role.
    pub role: Role,
}

impl RemoteEndpoint {
    /// Returns the endpoint of an application with this name.
    pub fn of(&self, application: &ApplicationName, name: &EndpointName) -> Endpoint {
        Endpoint {
            application: application.clone(),
            name: name.clone(),
            role: self.role,
            interface: self.interface.clone(),
        }
    }
}

/// An offer, as `show-offer` and `list-offers` show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferDetails {
    /// The offer's name in its model.
    pub name: ApplicationName,
    /// The offer's UUID. A later offer of the same name has another.
    pub uuid: OfferUuid,
    /// The URL for other models.
    pub url: OfferUrl,
    /// The offered application.
    pub application: ApplicationName,
    /// The application's charm, as `local:NAME-REV`.
    pub charm: String,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The offered endpoints, by name.
    pub endpoints: BTreeMap<EndpointName, RemoteEndpoint>,
    /// The caller's access to the offer.
    pub access: OfferAccess,
    /// The users with access to the offer: all of them for callers with admin access, and the caller alone for others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<UserName, OfferUser>,
    /// The relations with the offer; only for callers with admin access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<OfferConnection>,
}

/// A user with access to an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferUser {
    /// The name for people.
    pub display_name: String,
    /// The user's access to the offer.
    pub access: OfferAccess,
}

/// A relation with an offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferConnection {
    /// The UUID of the consuming model.
    pub source_model_uuid: ModelUuid,
    /// The owner of the consuming model.
    pub username: UserName,
    /// The relation's number in the offering model.
    pub relation_id: RelationId,
    /// The offered endpoint.
    pub endpoint: EndpointName,
    /// The relation's status.
    pub status: OfferConnectionStatus,
    /// The source subnets of the consuming units.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ingress_subnets: BTreeSet<Subnet>,
}

/// The status of a relation with an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferConnectionStatus {
    /// The state: `joining`, `joined`, ...
    pub current: RelationState,
    /// The reason of a suspension.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The time of the last change.
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
