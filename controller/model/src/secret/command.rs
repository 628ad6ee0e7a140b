//! The commands for the secrets of the model's users.

use std::{collections::BTreeMap, sync::Arc};

use periapt_host_api::{
    ApplicationName, ErrorCode, Refusal,
    command::{Answer, SecretSelector},
    secret::{
        Confidential, MAX_DESCRIPTION_BYTES, MAX_LABEL_BYTES, Removal, RotatePolicy, SecretData, SecretId,
        SecretOwner, SecretReader, SecretRevision, SecretUri,
    },
};

use periapt_host_api::settings::{OptionValue, OptionValues};

use super::life;
use crate::{entity::Secret, root::ModelState, transaction::Transaction};

/// The changes of a secret.
pub(crate) struct Change<'a> {
    pub(crate) content: Option<&'a Confidential<SecretData>>,
    pub(crate) name: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) auto_prune: Option<bool>,
}

/// Returns a secret by its id, or by name if it is one of the model's users.
pub(crate) fn find<'a>(state: &'a ModelState, selector: &SecretSelector) -> Result<&'a Arc<Secret>, Refusal> {
    let found = match selector {
        SecretSelector::Id(id) => state.secret(id),
        SecretSelector::Name(name) => {
            state.secrets_of(&SecretOwner::Model).find(|secret| secret.label.as_deref() == Some(name))
        }
    };
    found.ok_or_else(|| {
        Refusal::not_found(format!("secret {:?} not found", selector.to_string()))
            .about(format!("secret {selector}"))
    })
}

/// Returns a secret of the model's users. Only charms may change charms' secrets.
fn users(tx: &Transaction<'_>, selector: &SecretSelector) -> Result<Secret, Refusal> {
    let secret = find(&tx.state, selector)?;
    match secret.owner {
        SecretOwner::Model => Ok(Secret::clone(secret)),
        SecretOwner::Application(_) | SecretOwner::Unit(_) => {
            let text =
                format!("secret {:?} belongs to a charm, which alone changes it", secret.id.to_string());
            Err(Refusal::permission_denied(text).about(format!("secret {}", secret.id)))
        }
    }
}

fn check_name(tx: &Transaction<'_>, id: &SecretId, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > MAX_LABEL_BYTES {
        let text = format!("a secret's name must take 1 to {MAX_LABEL_BYTES} bytes, not {}", name.len());
        return Err(Refusal::bad_request(text));
    }
    life::check_label(tx, &SecretOwner::Model, id, name)
}

fn check_description(description: &str) -> Result<(), Refusal> {
    if description.len() > MAX_DESCRIPTION_BYTES {
        let bytes = description.len();
        let text = format!("a description takes {bytes} bytes, at most {MAX_DESCRIPTION_BYTES} are allowed");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    Ok(())
}

/// Refuses settings of type secret that name no secret of the model's users (`docs/hook-model.md` 6.2), and rewrites
/// the others in the form that charms read.
pub(crate) fn check_options<'a>(
    state: &ModelState,
    settings: &mut OptionValues,
    set: impl Iterator<Item = &'a String>,
) -> Result<(), Refusal> {
    for name in set {
        let Some(OptionValue::Secret(text)) = settings.get_mut(name) else { continue };
        let wrong = || Refusal::bad_request(format!("option {name:?} expected secret, got {text:?}"));
        let uri: SecretUri = text.parse().map_err(|_| wrong())?;
        let known = state.secret(&uri.id).is_some_and(|secret| secret.owner == SecretOwner::Model);
        if !known || uri.model.is_some_and(|model| model != state.model().uuid) {
            return Err(Refusal::not_found(format!("secret {text:?} not found")));
        }
        *text = uri.id.uri();
    }
    Ok(())
}

pub(crate) fn add(
    tx: &mut Transaction<'_>,
    id: Option<SecretId>,
    name: &str,
    content: &Confidential<SecretData>,
    description: &str,
) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    let id = id.ok_or_else(|| Refusal::new(ErrorCode::Internal, "a secret came without an id"))?;
    check_name(tx, &id, name)?;
    check_description(description)?;
    let now = tx.now();
    let secret = Secret {
        id,
        owner: SecretOwner::Model,
        label: Some(name.to_owned()),
        description: description.to_owned(),
        rotate: RotatePolicy::Never,
        next_rotate: None,
        rotate_due: false,
        auto_prune: false,
        latest: SecretRevision(1),
        made: SecretRevision(1),
        access: BTreeMap::new(),
        created_at: now,
        updated_at: now,
    };
    life::add(tx, secret, content, None)?;
    Ok(Answer::Secret { id })
}

pub(crate) fn update(
    tx: &mut Transaction<'_>,
    selector: &SecretSelector,
    change: &Change<'_>,
) -> Result<Answer, Refusal> {
    let before = users(tx, selector)?;
    let mut secret = before.clone();
    if let Some(name) = change.name {
        check_name(tx, &secret.id, name)?;
        secret.label = Some(name.to_owned());
    }
    if let Some(description) = change.description {
        check_description(description)?;
        description.clone_into(&mut secret.description);
    }
    if let Some(auto_prune) = change.auto_prune {
        secret.auto_prune = auto_prune;
    }
    if let Some(content) = change.content {
        life::revise(tx, &mut secret, content)?;
    }
    let id = secret.id;
    if secret != before {
        secret.updated_at = tx.now();
        life::put(tx, secret)?;
    }
    tx.note_garbage(id);
    Ok(Answer::Secret { id })
}

pub(crate) fn grant(
    tx: &mut Transaction<'_>,
    selector: &SecretSelector,
    applications: &[ApplicationName],
) -> Result<Answer, Refusal> {
    let mut secret = users(tx, selector)?;
    for name in applications {
        tx.application(name)?;
        secret.access.insert(SecretReader::Application(name.clone()), None);
    }
    if secret.access.len() > life::MAX_GRANTS {
        let text = format!("a secret has at most {} grants", life::MAX_GRANTS);
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("secret {}", secret.id)));
    }
    life::put(tx, secret)?;
    Ok(Answer::Done)
}

pub(crate) fn revoke(
    tx: &mut Transaction<'_>,
    selector: &SecretSelector,
    applications: &[ApplicationName],
) -> Result<Answer, Refusal> {
    let mut secret = users(tx, selector)?;
    for name in applications {
        tx.application(name)?;
        secret.access.remove(&SecretReader::Application(name.clone()));
    }
    let id = secret.id;
    tx.put(secret);
    tx.note_garbage(id);
    Ok(Answer::Done)
}

pub(crate) fn remove(
    tx: &mut Transaction<'_>,
    selector: &SecretSelector,
    revision: Option<SecretRevision>,
) -> Result<Answer, Refusal> {
    let secret = users(tx, selector)?;
    let removal = match revision {
        None => Removal::Secret,
        Some(revision) => Removal::Revisions([revision].into()),
    };
    life::remove(tx, &secret.id, &removal)?;
    Ok(Answer::Done)
}
