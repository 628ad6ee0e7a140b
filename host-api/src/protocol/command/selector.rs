//! Names of endpoints, relations and secrets in commands, where several forms are possible.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, EndpointName, NameError, RelationId,
    secret::{SecretId, SecretUri},
};

/// An endpoint as operators write it: `APPLICATION` or `APPLICATION:ENDPOINT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointSelector {
    /// The application.
    pub application: ApplicationName,
    /// The endpoint; none means the only one that fits.
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

/// Formats the selector as `APPLICATION` or `APPLICATION:ENDPOINT`.
impl fmt::Display for EndpointSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => write!(f, "{}:{endpoint}", self.application),
            None => self.application.fmt(f),
        }
    }
}

/// A relation, named by its id or by its ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelationSelector {
    /// The relation's id.
    Id(RelationId),
    /// The relation's two ends.
    Endpoints(EndpointSelector, EndpointSelector),
}

/// A secret as operators name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSelector {
    /// The secret's id.
    Id(SecretId),
    /// The name of a secret that the model's users own.
    Name(String),
}

/// Reads an id or a secret's URI as an id, and any other text as a name.
impl From<&str> for SecretSelector {
    fn from(text: &str) -> Self {
        match text.parse::<SecretUri>() {
            Ok(uri) => Self::Id(uri.id),
            Err(_) => Self::Name(text.to_owned()),
        }
    }
}

/// Formats the selector as the id or the name.
impl fmt::Display for SecretSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}
