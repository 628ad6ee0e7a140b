//! Between the parts of a laboratory values travel as they do between processes: as JSON.

use serde::{Serialize, de::DeserializeOwned};

use crate::LabError;

/// What arrives of a value that was sent.
pub(crate) fn travelled<T: Serialize + DeserializeOwned>(
    what: &'static str,
    value: &T,
) -> Result<T, LabError> {
    let lost = |error: serde_json::Error| LabError::DoesNotTravel { what, reason: error.to_string() };
    serde_json::from_slice(&serde_json::to_vec(value).map_err(lost)?).map_err(lost)
}
