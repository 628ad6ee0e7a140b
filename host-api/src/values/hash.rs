//! Short digests over values, to see that something differs (`hook-model.md` U-3, M-8).

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A hex digest of a value's JSON form. Only ordered maps are used, so equal values give equal digests.
pub fn of_value<T: Serialize>(value: &T) -> String {
    // A value that cannot be written as JSON (a map with keys that are no text) is a mistake in the type and
    // differs from every other: its error text is hashed.
    let bytes = serde_json::to_vec(value).unwrap_or_else(|error| error.to_string().into_bytes());
    let mut digest = hex::encode(Sha256::digest(&bytes));
    digest.truncate(32);
    digest
}
