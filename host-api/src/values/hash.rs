//! Short digests of values, to detect changes (`docs/hook-model.md` U-3, M-8).

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Returns a hex digest of a value's JSON form. All maps are ordered, so equal values have equal digests.
pub fn of_value<T: Serialize>(value: &T) -> String {
    // Only a mistake in the type makes a value that JSON cannot express (a map with keys that are no text). The
    // digest of the error text differs from that of any other value.
    let bytes = serde_json::to_vec(value).unwrap_or_else(|error| error.to_string().into_bytes());
    let mut digest = hex::encode(Sha256::digest(&bytes));
    digest.truncate(32);
    digest
}
