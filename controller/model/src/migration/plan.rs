//! The plan of a migration: what another controller needs to know of a model, or the reason why the model cannot go.

use std::collections::BTreeSet;

use periapt_host_api::{
    AgentName, ErrorCode, ModelUuid, Refusal, UserName,
    migration::{AgentKeyDigest, ImportPlan, ImportedAgent, MAX_PLANNED},
    size,
    status::Life,
};
use uuid::Uuid;

use super::entity::{Failed, Migration};
use crate::{
    entity::{Entity, Model, ModelGrant},
    root::{ModelState, Root},
};

/// The most names that a refusal lists.
const MAX_NAMED: usize = 10;

/// Returns the plan of a model's migration.
///
/// # Errors
/// The reason why the model cannot migrate.
pub fn plan_migration(root: &Root, uuid: &ModelUuid) -> Result<ImportPlan, Refusal> {
    plan_begun_migration(root, uuid, Uuid::nil())
}

/// Returns the plan of a migration that has begun.
///
/// # Errors
/// The reason why the model cannot migrate.
pub fn plan_begun_migration(root: &Root, uuid: &ModelUuid, begun: Uuid) -> Result<ImportPlan, Refusal> {
    let state = root.model(uuid).ok_or_else(|| Refusal::not_found(format!("model {uuid} not found")))?;
    let model = state.model();
    let refused = |reason: String| {
        Refusal::conflict(format!("cannot migrate model {:?}: {reason}", model.name.as_str()))
            .about(format!("model {}", model.name))
    };
    let known = state.migration().filter(|migration| !migration.is(begun));
    if let Some(Migration::Exporting(export) | Migration::HandedOver(export)) = known {
        let to = export.target.addresses.join(", ");
        return Err(refused(format!("a migration to {to} is under way")));
    }
    if let Some(Migration::Failed(Failed { untold: Some(export), .. })) = known {
        let to = export.target.addresses.join(", ");
        return Err(Refusal::new(
            ErrorCode::TryAgain,
            format!(
                "cannot migrate model {:?}: the controller at {to} is yet to delete what came of it; if that controller \
                 is lost for good, or the session there has ended, use --abort --force here first, and there with the \
                 model's UUID",
                model.name.as_str()
            ),
        ));
    }
    if model.life != Life::Alive {
        return Err(refused("it is being destroyed".to_owned()));
    }
    if let Some(offer) = state.offers().next() {
        let text = format!("it offers {:?} to other models, which would lose it", offer.name.as_str());
        return Err(refused(text));
    }
    if let Some(remote) = state.remote_applications().next() {
        let text = format!("it consumes {:?}, which is an offer of this controller", remote.name.as_str());
        return Err(refused(text));
    }
    let names = agents_of(state);
    let mut agents = Vec::with_capacity(names.len());
    for agent in names {
        if let Some((_, other)) = root.models_at(&agent).find(|(other, _)| *other != uuid) {
            let other = other.model().name.as_str();
            return Err(refused(format!(
                "agent {:?} serves model {other:?} as well, and an agent belongs to one controller; move their units \
                 apart first",
                agent.as_str()
            )));
        }
        let key = root.enrolment(&agent).and_then(|enrolment| enrolment.key).ok_or_else(|| {
            refused(format!("agent {:?} was removed, and has units or storage of it", agent.as_str()))
        })?;
        agents.push(AgentKeyDigest { agent, key });
    }
    let users: Vec<UserName> = users_of(root, state).into_iter().collect();
    if agents.len() > MAX_PLANNED || users.len() > MAX_PLANNED {
        return Err(refused(format!("it has more than {MAX_PLANNED} agents or users")));
    }
    let plain = Model { migration: None, arrived: None, ..model.clone() };
    let plain = serde_json::to_value(Entity::from(plain)).map_err(|error| refused(error.to_string()))?;
    let source = root.controller().map_or(Uuid::nil(), |controller| controller.uuid);
    Ok(ImportPlan { id: begun, source, level: root.level(), model: plain, users, agents })
}

/// Returns the agents with machines or storage of a model.
pub(super) fn agents_of(state: &ModelState) -> BTreeSet<AgentName> {
    let machines = state.machines().map(|machine| &machine.agent);
    let storages = state.storages().chain(state.forgotten_storages());
    machines.chain(storages.filter_map(|storage| storage.agent.as_ref())).cloned().collect()
}

/// Returns the owner, and the users whose grants have an effect.
fn users_of(root: &Root, state: &ModelState) -> BTreeSet<UserName> {
    let granted = state.granted_users().filter(|user| is_in_effect(root, state, user));
    granted.chain([&state.model().owner]).cloned().collect()
}

/// Returns true if a user's grant is of the present user of this name.
fn is_in_effect(root: &Root, state: &ModelState, user: &UserName) -> bool {
    state.grant(user).zip(root.user(user)).is_some_and(|(grant, user)| grant.user_uuid == user.uuid)
}

/// Returns the entities of a model that migrate, in the order in which they are read. The model itself is in the plan. The
/// grant of a user who is not there any more goes along without effect, so that the number of entities stays.
pub fn entities_to_migrate<'a>(
    root: &'a Root,
    state: &'a ModelState,
) -> impl Iterator<Item = Entity> + use<'a> {
    state.keys().filter_map(move |key| match state.get(&key)? {
        Entity::ModelGrant(grant) if !is_in_effect(root, state, &grant.user) => {
            Some(ModelGrant { user_uuid: Uuid::nil(), ..ModelGrant::clone(&grant) }.into())
        }
        entity => Some(entity),
    })
}

/// Returns the agents that migrate with a model, in pages of at most so many agents and about so many bytes.
pub fn agents_to_migrate(
    root: &Root,
    plan: &ImportPlan,
    most: usize,
    bytes: usize,
) -> Vec<Vec<ImportedAgent>> {
    let mut pages: Vec<Vec<ImportedAgent>> = Vec::new();
    let mut filled = 0;
    for AgentKeyDigest { agent, key } in &plan.agents {
        let Some(known) = root.agent(agent) else { continue };
        let imported = ImportedAgent { agent: agent.clone(), key: *key, host: known.host.clone() };
        let size = size::of_json(&imported);
        match pages.last_mut() {
            Some(page) if page.len() < most && filled + size <= bytes => {
                page.push(imported);
                filled += size;
            }
            _ => {
                pages.push(vec![imported]);
                filled = size;
            }
        }
    }
    pages
}

/// Returns names for a message, a few of them.
pub(crate) fn listed<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<String> = names.by_ref().take(MAX_NAMED).map(|name| name.to_string()).collect();
    let more = if names.next().is_some() { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}
