//! The check of a right: the access of a caller to a subject, and the refusal of a caller without it.

use std::{collections::BTreeMap, sync::Arc};

use periapt_host_api::{
    AgentName, Digest, Refusal, UserName,
    access::{ControllerAccess, ModelAccess},
    command::Caller,
    offer::OfferAccess,
};

use super::table::{Holder, Right};
use crate::{
    agent::assignments::{assignment, is_assigned},
    entity::{Offer, User},
    root::{ModelState, Root},
};

/// A subject of a right.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// The controller as a whole.
    Controller,
    /// A user of the controller.
    User(&'a UserName),
    /// A model.
    Model(&'a ModelState),
    /// An offer of a model.
    Offer(&'a ModelState, &'a Offer),
    /// An agent.
    Agent(&'a AgentName),
    /// The runner of a model on an agent.
    Runner(&'a AgentName, &'a ModelState),
}

/// Returns the user of a caller, if the user exists, is not disabled and may log in.
pub fn active_user<'a>(root: &'a Root, caller: &Caller) -> Option<&'a User> {
    let Caller::User(name) = caller else { return None };
    root.user(name).filter(|user| user.may_log_in())
}

/// Returns true if a user administers the controller and every model.
pub fn is_superuser(user: &User) -> bool {
    user.access == Some(ControllerAccess::Superuser)
}

/// Returns a caller's access to a model as a user, if it has any. A superuser administers every model.
pub fn model_access(root: &Root, state: &ModelState, caller: &Caller) -> Option<ModelAccess> {
    let user = active_user(root, caller)?;
    if is_superuser(user) { Some(ModelAccess::Admin) } else { granted(state, user) }
}

/// Returns the access to a model that a user was granted. A grant of an earlier user of the same name has no effect.
pub(crate) fn granted(state: &ModelState, user: &User) -> Option<ModelAccess> {
    state.grant(&user.name).filter(|grant| grant.user_uuid == user.uuid).map(|grant| grant.access)
}

/// Returns the models that a user may read, by id: all for a superuser, and else those that the user was granted.
pub fn readable_models<'a>(
    root: &'a Root,
    caller: &Caller,
) -> Box<dyn Iterator<Item = &'a Arc<ModelState>> + 'a> {
    match active_user(root, caller) {
        Some(user) if is_superuser(user) => Box::new(root.models().map(|(_, state)| state)),
        Some(user) => Box::new(root.granted_models(user)),
        None => Box::new(std::iter::empty()),
    }
}

/// Returns the models in which a user may have access to an offer, by id: those that the user may read, and those with
/// an offer that the user was granted.
pub fn models_with_offers<'a>(root: &'a Root, caller: &Caller) -> Vec<&'a Arc<ModelState>> {
    let granted = active_user(root, caller).filter(|user| !is_superuser(user));
    let offering = granted.into_iter().flat_map(|user| root.models_offering_to(user));
    let both = readable_models(root, caller).chain(offering);
    let both: BTreeMap<_, _> = both.map(|state| (state.model().uuid, state)).collect();
    both.into_values().collect()
}

/// Returns a caller's access to an offer (`docs/hook-model.md` 7.8). An administrator of the offer's model has full
/// access.
pub fn offer_access(root: &Root, state: &ModelState, offer: &Offer, caller: &Caller) -> Option<OfferAccess> {
    let user = active_user(root, caller)?;
    if model_access(root, state, caller) == Some(ModelAccess::Admin) {
        return Some(OfferAccess::Admin);
    }
    offer.grants.get(&user.name).filter(|grant| grant.user_uuid == user.uuid).map(|grant| grant.access)
}

/// Returns true if a user may use a charm by its digest: a superuser, and a user who uploaded it or reads a model that
/// uses it.
pub(crate) fn may_use_charm(root: &Root, caller: &Caller, charm: &Digest) -> bool {
    may_fetch_charm(root, caller, charm, &|state| {
        is_allowed(root, caller, Right::ReadModel, Subject::Model(state))
    })
}

/// Returns true if a caller may download a charm: a superuser, a user who uploaded it or reads a model that uses it, and
/// an agent that runs it or will run it. `sees` tells the models that the caller sees.
pub fn may_fetch_charm(
    root: &Root,
    caller: &Caller,
    charm: &Digest,
    sees: &dyn Fn(&ModelState) -> bool,
) -> bool {
    match caller {
        Caller::User(_) => active_user(root, caller).is_some_and(|user| {
            is_superuser(user)
                || root.charm(charm).is_some_and(|charm| charm.uploaders.has(user))
                || root.granted_models_using(user, charm).any(|state| sees(state))
        }),
        Caller::Agent(agent) => {
            let mut assigned = root.models_using(charm).filter_map(|state| assignment(state, agent));
            assigned.any(|assigned| assigned.charms.contains(charm))
        }
        Caller::Runner { .. } | Caller::Worker => false,
    }
}

/// Returns true if a user may attach a content by its digest: a superuser, and a user who uploaded it or reads a model
/// with a resource of this content.
pub(crate) fn may_use_content(root: &Root, caller: &Caller, content: &Digest) -> bool {
    may_know_resource(root, caller, content, &|state| {
        is_allowed(root, caller, Right::ReadModel, Subject::Model(state))
    })
}

/// Returns true if a caller may learn that content for resources is there: a superuser, and a user who uploaded it or
/// reads a model with a resource of this content. `sees` tells the models that the caller sees.
pub fn may_know_resource(
    root: &Root,
    caller: &Caller,
    content: &Digest,
    sees: &dyn Fn(&ModelState) -> bool,
) -> bool {
    let Some(known) = root.resource_content(content) else { return false };
    active_user(root, caller).is_some_and(|user| {
        is_superuser(user)
            || known.uploaders.has(user)
            || root.granted_models_with(user, content).any(|state| sees(state))
    })
}

/// Returns true if a caller has a right.
pub fn is_allowed(root: &Root, caller: &Caller, right: Right, subject: Subject<'_>) -> bool {
    right.row().holders.iter().any(|holder| holds(root, caller, *holder, subject))
}

fn holds(root: &Root, caller: &Caller, holder: Holder, subject: Subject<'_>) -> bool {
    let model_at_least = |needed: ModelAccess| match subject {
        Subject::Model(state) => model_access(root, state, caller).is_some_and(|access| access >= needed),
        _ => false,
    };
    let offer_at_least = |needed: OfferAccess| match subject {
        Subject::Offer(state, offer) => {
            offer_access(root, state, offer, caller).is_some_and(|access| access >= needed)
        }
        _ => false,
    };
    match holder {
        Holder::Anyone => true,
        Holder::AnyUser => active_user(root, caller).is_some(),
        Holder::Superuser => active_user(root, caller).is_some_and(is_superuser),
        Holder::Oneself => active_user(root, caller)
            .is_some_and(|user| matches!(subject, Subject::User(name) if *name == user.name)),
        Holder::ModelReader => model_at_least(ModelAccess::Read),
        Holder::ModelWriter => model_at_least(ModelAccess::Write),
        Holder::ModelAdmin => model_at_least(ModelAccess::Admin),
        Holder::AnyModelWriter => {
            active_user(root, caller).is_some_and(|user| root.was_granted_a_write(user))
        }
        Holder::OfferReader => offer_at_least(OfferAccess::Read),
        Holder::OfferAdmin => offer_at_least(OfferAccess::Admin),
        Holder::AnyAgent => matches!(caller, Caller::Agent(_)),
        Holder::SameAgent => {
            matches!((caller, subject), (Caller::Agent(own), Subject::Agent(name)) if own == name)
        }
        Holder::RunnersAgent => match (caller, subject) {
            (Caller::Agent(own), Subject::Runner(agent, state)) => own == agent && is_assigned(state, agent),
            (Caller::Runner { agent: own, model }, Subject::Runner(agent, state)) => {
                own == agent && *model == state.model().uuid
            }
            _ => false,
        },
        Holder::Worker => *caller == Caller::Worker,
    }
}

/// Refuses a caller without a right. The caller may know of the subject; a subject that it may not see is refused
/// before, as one that does not exist.
///
/// # Errors
/// Permission denied.
pub fn require(root: &Root, caller: &Caller, right: Right, subject: Subject<'_>) -> Result<(), Refusal> {
    if is_allowed(root, caller, right, subject) { Ok(()) } else { Err(denied()) }
}

/// Returns the refusal for a caller without the permission. A caller that may not know of a thing gets the same
///
pub(crate) fn denied() -> Refusal {
    Refusal::permission_denied("permission denied")
}
