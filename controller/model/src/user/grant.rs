//! Grants of access to the controller, models and offers. The texts of refusals are Juju's.

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal, UserName,
    access::{ControllerAccess, ModelAccess},
    command::{Answer, Caller},
    offer::{OfferAccess, OfferUrl},
};

use super::{
    account,
    entity::{ModelGrant, OfferGrant, User},
    find::{find, is_first, put},
    session,
};
use crate::{
    access::check::granted,
    entity::{ModelKey, Offer},
    input::Environment,
    offer,
    root::{Root, changes::Changes},
    transaction::Transaction,
};

/// The most users who are granted access to one model.
const MAX_MODEL_GRANTS: usize = 1_000;

/// The most users who are granted access to one offer. They are part of its entity.
const MAX_OFFER_GRANTS: usize = 100;

/// The most grants without effect that one command deletes to make room.
const STALE_STEP: usize = 50;

/// Returns the refusal of a grant that gives nothing new.
fn has_already(subject: &str, access: impl std::fmt::Display) -> Refusal {
    Refusal::already_exists(format!(
        "could not grant {subject} access: user already has \"{access}\" access or greater"
    ))
}

/// Returns the refusal to revoke access that the user does not have.
fn has_not(subject: &str, user: &UserName, access: impl std::fmt::Display) -> Refusal {
    Refusal::not_found(format!(
        "could not revoke {subject} access: user {:?} does not have \"{access}\" access",
        user.as_str()
    ))
    .about(format!("user {user}"))
}

/// Grants a user access to the controller. An external user is known from its first grant on.
pub(crate) fn grant_controller(
    root: &Root,
    caller: &Caller,
    (name, access): (&UserName, ControllerAccess),
    env: &Environment,
) -> Result<Changes, Refusal> {
    if name.is_external() && root.user(name).is_none() {
        return account::external(root, caller, name, access, env).map(put);
    }
    let user = find(root, name)?;
    if user.access >= Some(access) {
        return Err(has_already("controller", access).about(format!("user {name}")));
    }
    Ok(put(User { access: Some(access), ..user.clone() }))
}

pub(crate) fn revoke_controller(
    root: &Root,
    name: &UserName,
    access: ControllerAccess,
) -> Result<Changes, Refusal> {
    let user = find(root, name)?;
    if user.access < Some(access) {
        return Err(has_not("controller", name, access));
    }
    if is_first(user) {
        let text = format!(
            "could not revoke controller access: {:?} is the controller's owner and stays a superuser",
            name.as_str()
        );
        return Err(Refusal::conflict(text).about(format!("user {name}")));
    }
    let (left, mut changes) = match access {
        ControllerAccess::Superuser => (Some(ControllerAccess::Login), Changes::default()),
        ControllerAccess::Login => (None, session::close_all(root, name, None)),
    };
    changes.puts.extend(put(User { access: left, ..user.clone() }).puts);
    Ok(changes)
}

pub(crate) fn grant_model(
    tx: &mut Transaction<'_>,
    name: &UserName,
    access: ModelAccess,
) -> Result<Answer, Refusal> {
    let user = find(tx.root, name)?;
    if granted(&tx.state, user) >= Some(access) {
        return Err(has_already("model", access).about(format!("user {name}")));
    }
    if tx.state.grant(name).is_none() && tx.state.grants().count() >= MAX_MODEL_GRANTS {
        drop_stale(tx);
        if tx.state.grants().count() >= MAX_MODEL_GRANTS {
            let text = format!("a model is granted to at most {MAX_MODEL_GRANTS} users");
            return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
        }
    }
    tx.put(ModelGrant { user: name.clone(), user_uuid: user.uuid, access });
    Ok(Answer::Done)
}

/// Deletes grants of users who were removed. They have no effect.
fn drop_stale(tx: &mut Transaction<'_>) {
    let is_stale =
        |grant: &ModelGrant| tx.root.user(&grant.user).is_none_or(|user| user.uuid != grant.user_uuid);
    let stale: Vec<UserName> = tx
        .state
        .grants()
        .filter(|grant| is_stale(grant))
        .map(|grant| grant.user.clone())
        .take(STALE_STEP)
        .collect();
    for user in stale {
        tx.delete(ModelKey::Grant(user));
    }
}

pub(crate) fn revoke_model(
    tx: &mut Transaction<'_>,
    name: &UserName,
    access: ModelAccess,
) -> Result<Answer, Refusal> {
    let user = find(tx.root, name)?;
    if granted(&tx.state, user) < Some(access) {
        return Err(has_not("model", name, access));
    }
    let left = match access {
        ModelAccess::Admin => Some(ModelAccess::Write),
        ModelAccess::Write => Some(ModelAccess::Read),
        ModelAccess::Read => None,
    };
    match left {
        Some(access) => tx.put(ModelGrant { user: name.clone(), user_uuid: user.uuid, access }),
        None => tx.delete(ModelKey::Grant(name.clone())),
    }
    Ok(Answer::Done)
}

/// Begins a transaction on the model of an offer.
fn on_offer<'a>(
    root: &'a Root,
    env: &'a Environment,
    caller: &Caller,
    url: &OfferUrl,
) -> Result<(Transaction<'a>, Offer), Refusal> {
    let (state, offer) = offer::visible_offer(root, caller, url)?;
    Ok((Transaction::begin(root, env, state.model().uuid)?, Offer::clone(offer)))
}

pub(crate) fn grant_offer<'a>(
    root: &'a Root,
    env: &'a Environment,
    caller: &Caller,
    (url, name, access): (&OfferUrl, &UserName, OfferAccess),
) -> Result<Transaction<'a>, Refusal> {
    let (mut tx, mut offer) = on_offer(root, env, caller, url)?;
    let user = find(root, name)?;
    if granted_offer(&offer, user) >= Some(access) {
        return Err(has_already("offer", access).about(format!("user {name}")));
    }
    drop_stale_of_offer(root, &mut offer.grants);
    if offer.grants.len() >= MAX_OFFER_GRANTS {
        let text = format!("an offer is granted to at most {MAX_OFFER_GRANTS} users");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    offer.grants.insert(name.clone(), OfferGrant { user_uuid: user.uuid, access });
    tx.put(offer);
    Ok(tx)
}

pub(crate) fn revoke_offer<'a>(
    root: &'a Root,
    env: &'a Environment,
    caller: &Caller,
    (url, name, access): (&OfferUrl, &UserName, OfferAccess),
) -> Result<Transaction<'a>, Refusal> {
    let (mut tx, mut offer) = on_offer(root, env, caller, url)?;
    let user = find(root, name)?;
    if granted_offer(&offer, user) < Some(access) {
        return Err(has_not("offer", name, access));
    }
    let left = match access {
        OfferAccess::Admin => Some(OfferAccess::Consume),
        OfferAccess::Consume => Some(OfferAccess::Read),
        OfferAccess::Read => None,
    };
    match left {
        Some(access) => {
            offer.grants.insert(name.clone(), OfferGrant { user_uuid: user.uuid, access });
        }
        None => {
            offer.grants.remove(name);
        }
    }
    tx.put(offer);
    Ok(tx)
}

fn granted_offer(offer: &Offer, user: &User) -> Option<OfferAccess> {
    offer.grants.get(&user.name).filter(|grant| grant.user_uuid == user.uuid).map(|grant| grant.access)
}

fn drop_stale_of_offer(root: &Root, grants: &mut BTreeMap<UserName, OfferGrant>) {
    grants.retain(|name, grant| root.user(name).is_some_and(|user| user.uuid == grant.user_uuid));
}
