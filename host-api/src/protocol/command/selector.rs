//! How commands name relations and secrets that have several names.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, EndpointName, NameError, RelationId,
    secret::{SecretId, SecretUri},
};

/// An endpoint as a person names it: `APPLICATION` or `APPLICATION:ENDPOINT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointSelector {
    /// The application.
    pub application: ApplicationName,
    /// The endpoint; none: whichever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointName>,
}

impl FromStr for EndpointSelector {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let (application, endpoint) = match text.split_once(':') {
            Some((application, endpoint)) => (application, Some(endpoint)),
            None => (text, None),
        };
        Ok(Self {
            application: ApplicationName::new(application)?,
            endpoint: endpoint.map(EndpointName::new).transpose()?,
        })
    }
}

/// `APPLICATION` or `APPLICATION:ENDPOINT`.
impl fmt::Display for EndpointSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => write!(f, "{}:{endpoint}", self.application),
            None => self.application.fmt(f),
        }
    }
}

/// Which relation is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelationSelector {
    /// By number.
    Id(RelationId),
    /// By its ends.
    Endpoints(EndpointSelector, EndpointSelector),
}

/// A secret as a person names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSelector {
    /// By its id.
    Id(SecretId),
    /// By its name, of a secret of the model's users.
    Name(String),
}

/// What reads as an id or a URI is one; anything else is a name.
impl From<&str> for SecretSelector {
    fn from(text: &str) -> Self {
        match text.parse::<SecretUri>() {
            Ok(uri) => Self::Id(uri.id),
            Err(_) => Self::Name(text.to_owned()),
        }
    }
}

/// The id or the name.
impl fmt::Display for SecretSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}
