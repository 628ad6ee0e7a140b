//! Transport between the parts of a laboratory: JSON, as between processes.

use serde::{Serialize, de::DeserializeOwned};

use crate::LabError;

/// Returns the value that arrives when a value is sent.
pub(crate) fn transported<T: Serialize + DeserializeOwned>(
    what: &'static str,
    value: &T,
) -> Result<T, LabError> {
    let lost = |error: serde_json::Error| LabError::DoesNotTravel { what, reason: error.to_string() };
    serde_json::from_slice(&serde_json::to_vec(value).map_err(lost)?).map_err(lost)
}
