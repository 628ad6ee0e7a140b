//! Readers of fields: null means the same as a missing field.

use serde::{Deserialize, Deserializer};

/// Reads a value; null is the default.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Returns true for a value that is its default, and so is left out of documents.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
