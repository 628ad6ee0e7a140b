//! The rules about secrets that expired, must rotate, changed, or have obsolete revisions (`docs/hook-model.md` 1.7
//! rule 10, 5.9).

use periapt_host_api::{
    Timestamp,
    event::Event,
    secret::{SecretContext, SecretOwner, SecretRevision},
    view::{OwnedSecretView, SecretView},
};

use crate::{Decision, resolve_input::ResolveInput};

/// Returns the next secret hook of a unit at rest. A dying unit runs none (U-41).
pub(super) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    if !input.record().installed || !input.alive() || !input.at_rest() {
        return None;
    }
    let event =
        expired(input).or_else(|| rotation(input)).or_else(|| changed(input)).or_else(|| obsolete(input))?;
    Some(input.run(event, now))
}

/// Returns true if a hook that was due or failed is moot: the secret is gone, or the unit may not manage or read it
/// any more (1.4 step 1, M05).
pub(super) fn is_moot(input: &ResolveInput<'_>, event: &Event) -> bool {
    let Some(context) = event.secret() else { return false };
    let Some(secret) = input.view.secrets.get(&context.id) else { return true };
    let owned = managed(input, secret);
    match event {
        Event::SecretExpired { revision, .. } | Event::SecretRemove { revision, .. } => {
            owned.is_none_or(|owned| !owned.revisions.contains_key(revision))
        }
        Event::SecretRotate(_) => owned.is_none(),
        _ => !secret.is_readable_by(&input.unit.name),
    }
}

/// Returns the owner's data of a secret that the unit manages: its own, or its application's if it leads (S-7).
fn managed<'a>(input: &ResolveInput<'_>, secret: &'a SecretView) -> Option<&'a OwnedSecretView> {
    match &secret.owner {
        SecretOwner::Application(_) if !input.leads() => None,
        _ => secret.as_owned_by(&input.unit.name),
    }
}

fn all_managed<'a>(
    input: &'a ResolveInput<'_>,
) -> impl Iterator<Item = (&'a SecretView, &'a OwnedSecretView)> {
    input.view.secrets.values().filter_map(|secret| Some((secret, managed(input, secret)?)))
}

fn context(input: &ResolveInput<'_>, secret: &SecretView) -> SecretContext {
    let consumer = secret.consumers.get(&input.unit.name).and_then(|consumer| consumer.label.clone());
    let label = secret.as_owned_by(&input.unit.name).and_then(|owned| owned.label.clone()).or(consumer);
    SecretContext { id: secret.id, label }
}

fn expired(input: &ResolveInput<'_>) -> Option<Event> {
    all_managed(input).find_map(|(secret, owned)| {
        let (revision, _) = owned.revisions.iter().find(|(_, found)| found.expire_due)?;
        Some(Event::SecretExpired { secret: context(input, secret), revision: *revision })
    })
}

fn rotation(input: &ResolveInput<'_>) -> Option<Event> {
    let (secret, _) = all_managed(input).find(|(_, owned)| owned.rotate_due)?;
    Some(Event::SecretRotate(context(input, secret)))
}

/// Returns secret-changed, once for each new latest revision, however many came at once (S-2).
fn changed(input: &ResolveInput<'_>) -> Option<Event> {
    let unit = &input.unit.name;
    let secret = input.view.secrets.values().find(|secret| {
        let told = input.record().secrets.get(&secret.id).and_then(|record| record.changed);
        let tracked = secret.consumers.get(unit).map(|consumer| consumer.tracked);
        secret.is_readable_by(unit)
            && tracked.is_some_and(|tracked| secret.latest > tracked.max(told.unwrap_or_default()))
    })?;
    Some(Event::SecretChanged(context(input, secret)))
}

/// Returns secret-remove, once for each obsolete revision (S-8).
fn obsolete(input: &ResolveInput<'_>) -> Option<Event> {
    all_managed(input).find_map(|(secret, owned)| {
        let told = input.record().secrets.get(&secret.id);
        let unheard = |revision: &SecretRevision| !told.is_some_and(|told| told.obsolete.contains(revision));
        let (revision, _) =
            owned.revisions.iter().find(|(revision, found)| found.obsolete && unheard(revision))?;
        Some(Event::SecretRemove { secret: context(input, secret), revision: *revision })
    })
}
