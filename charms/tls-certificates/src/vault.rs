//! The secrets: the authority's own key, and a key for each requesting unit. The application owns all of them, so
//! only its leader changes them, and the next leader finds them.

use crate::authority::{Authority, Issued};
use periapt_sdk::{Refusal, Relation, Result, Rotate, Secret, Unit};
use std::time::Duration;

/// The label of the authority's secret.
const AUTHORITY: &str = "authority";

/// The key in a secret that holds a private key.
const PRIVATE_KEY: &str = "private-key";

const CERTIFICATE: &str = "certificate";

/// Returns the authority, if there is one.
pub(crate) fn authority(unit: &Unit) -> Result<Option<Authority>> {
    let Some(secret) = authoritys(unit)? else { return Ok(None) };
    // Tracking an old revision would keep it from being removed.
    let content = secret.refresh()?;
    Authority::from_parts(content.text(PRIVATE_KEY)?, content.text(CERTIFICATE)?).map(Some)
}

pub(crate) fn add_authority(unit: &Unit, authority: &Authority, rotation: Rotate) -> Result {
    let Issued { private_key, certificate, .. } = authority.parts()?;
    let new = unit.app_secret().value(PRIVATE_KEY, private_key).value(CERTIFICATE, certificate);
    new.label(AUTHORITY).description("the authority's key").rotate(rotation).add().map(drop)
}

/// Replaces the present authority.
pub(crate) fn replace_authority(unit: &Unit, authority: &Authority) -> Result {
    let Issued { private_key, certificate, .. } = authority.parts()?;
    match authoritys(unit)? {
        Some(secret) => {
            secret.change().value(PRIVATE_KEY, private_key).value(CERTIFICATE, certificate).apply()
        }
        None => Ok(()),
    }
}

/// Sets the authority's rotation policy.
pub(crate) fn set_rotation(unit: &Unit, rotation: Rotate) -> Result {
    match authoritys(unit)? {
        Some(secret) => secret.change().rotate(rotation).apply(),
        None => Ok(()),
    }
}

/// Adds a key that only one unit may read, and returns the secret's URI.
pub(crate) fn add_key(
    unit: &Unit,
    relation: &Relation,
    of: &str,
    private_key: &str,
    renew_after: Duration,
) -> Result<String> {
    let new = unit.app_secret().value(PRIVATE_KEY, private_key).expire(seconds(renew_after));
    let new = new.label(format!("key-{}-{of}", relation.id())).description(format!("the key of {of}"));
    let secret = new.add()?;
    secret.grant_unit(relation, of)?;
    Ok(secret.uri().to_owned())
}

pub(crate) fn replace_key(uri: &str, private_key: &str, renew_after: Duration) -> Result {
    Secret::new(uri).change().value(PRIVATE_KEY, private_key).expire(seconds(renew_after)).apply()
}

/// Removes a key with all its revisions.
pub(crate) fn remove_key(uri: &str) -> Result {
    Secret::new(uri).remove()
}

/// Removes one revision of a key.
pub(crate) fn remove_revision(uri: &str, revision: u32) -> Result {
    Secret::new(uri).remove_revision(revision)
}

/// Returns true if two texts name the same secret. One of them may include its model.
pub(crate) fn is_same(one: Option<&str>, other: &str) -> bool {
    one.is_some_and(|one| one.rsplit(['/', ':']).next() == other.rsplit(['/', ':']).next())
}

/// Returns the authority's secret, by its label.
fn authoritys(unit: &Unit) -> Result<Option<Secret>> {
    match unit.secret_labelled(AUTHORITY) {
        Err(error) if matches!(error.refusal(), Some(Refusal::NotFound(_))) => Ok(None),
        found => found.map(Some),
    }
}

/// Writes a duration as an expiry.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs())
}
