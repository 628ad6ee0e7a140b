//! Reads of secrets: content for runners, and everything for people.

use periapt_host_api::{
    Refusal, UnitName,
    api::{SecretAccess, SecretDetails, SecretRevisionDetails},
    command::{Caller, SecretSelector},
    secret::{Sealed, SealedFor, SecretId, SecretKey, SecretReader, SecretRevision},
};

use super::command;
use crate::{
    access::check::denied,
    entity::Secret,
    root::{ModelState, Root},
};

/// Returns the sealed content of one revision, and its sealing context, for a runner's unit. The current state
/// decides on access, not the runner's snapshot.
///
/// # Errors
/// `permission denied` for a secret that the unit may not read, and for another runner's unit. Not found for a secret
/// that does not exist, and for a missing revision of a readable one. So a charm gets the same answer whether its own
/// host knows the secret or not; ids are random, so this reveals no secrets. [`SecretRevision::NONE`] is always
/// denied: the runner's view is older than the grant.
pub fn secret_for_unit(
    root: &Root,
    caller: &Caller,
    unit: &UnitName,
    key: &SecretKey,
) -> Result<(Sealed, SealedFor), Refusal> {
    let Caller::Runner { agent, model } = caller else { return Err(denied()) };
    let state = root.model_for_runner(model).ok_or_else(denied)?;
    let found = state.unit(unit).filter(|unit| state.agent_of(unit) == Some(agent)).ok_or_else(denied)?;
    let secret = state.secret(&key.id).ok_or_else(|| missing(&key.id))?;
    if key.revision == SecretRevision::NONE || !state.may_read_secret(secret, &found.name) {
        return Err(denied());
    }
    content(state, key)
}

/// Returns the sealed content of one revision for an administrator of the model.
///
/// # Errors
/// The revision does not exist.
pub fn secret_for_admin(state: &ModelState, key: &SecretKey) -> Result<(Sealed, SealedFor), Refusal> {
    content(state, key)
}

fn missing(id: &SecretId) -> Refusal {
    Refusal::not_found(format!("secret {:?} not found", id.to_string())).about(format!("secret {id}"))
}

fn content(state: &ModelState, key: &SecretKey) -> Result<(Sealed, SealedFor), Refusal> {
    let SecretKey { id, revision } = key;
    let content = state.secret_content(id, *revision).ok_or_else(|| {
        Refusal::not_found(format!("secret {:?} revision {revision} not found", id.to_string()))
            .about(format!("secret {id}"))
    })?;
    Ok((content.sealed.clone(), SealedFor::Content(state.model().uuid, *id)))
}

/// Returns the secret that a selector names.
///
/// # Errors
/// The secret does not exist.
pub fn find_secret<'a>(state: &'a ModelState, selector: &SecretSelector) -> Result<&'a Secret, Refusal> {
    command::find(state, selector).map(AsRef::as_ref)
}

/// Returns a secret's details for display, without content.
pub fn secret_details(state: &ModelState, secret: &Secret) -> SecretDetails {
    let revisions = state.secret_contents(&secret.id).filter_map(|content| {
        let expiry = state.secret_expiry(&secret.id, content.revision)?;
        let (created_at, updated_at) = (content.created_at, expiry.updated_at);
        let details = SecretRevisionDetails { created_at, updated_at, expire: expiry.expire };
        Some((content.revision, details))
    });
    let access = secret.access.iter().filter(|(_, relation)| state.grant_holds(relation.as_ref()));
    SecretDetails {
        id: secret.id,
        owner: secret.owner.clone(),
        revision: secret.latest,
        label: secret.label.clone(),
        description: secret.description.clone(),
        rotate: secret.rotate,
        next_rotate: secret.next_rotate,
        expire: state.secret_expiry(&secret.id, secret.latest).and_then(|expiry| expiry.expire),
        auto_prune: secret.auto_prune,
        created_at: secret.created_at,
        updated_at: secret.updated_at,
        revisions: revisions.collect(),
        access: access.map(|(reader, relation)| access_of(state, reader, relation.as_ref())).collect(),
        content: None,
    }
}

fn access_of(
    state: &ModelState,
    reader: &SecretReader,
    relation: Option<&periapt_host_api::RelationId>,
) -> SecretAccess {
    let relation = relation.and_then(|id| state.relation(id));
    let scope = match relation {
        // The relation's key in a tag: blanks and colons are replaced.
        Some(relation) => format!("relation-{}", relation.describe().replace(':', ".").replace(' ', "#")),
        None => format!("model-{}", state.model().uuid),
    };
    SecretAccess { target: reader.tag(), scope, role: "view".to_owned() }
}
