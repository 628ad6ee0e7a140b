//! The whole state of a controller at one revision, as persistent maps: clones are cheap and share what did not
//! change.

use std::{ops::Bound, sync::Arc};

use imbl::{OrdMap, OrdSet};
use periapt_host_api::{
    AgentName, ApplicationName, Digest, LeaderTerm, ModelUuid, RelationId, Revision, Timestamp, UserName,
    command::Caller,
    timing::{AGENT_GRACE_MS, LEASE_AFTER_RESTART_MS},
};

use crate::entity::{
    Agent, AgentPool, AnswerKey, AuditHead, Charm, Controller, CrossModelId, Enrolment, Entity, EntityKey,
    KeptAnswer, ModelKey, ResourceContent, Session, User,
};
use answers::AnswerIndex;
use changes::Changes;
use enrolments::JoinTokenIndex;
use hosts::HostIndex;
use models::ModelIndex;
use parts::PartIndex;
use users::{SessionIndex, UserIndex};

mod answers;
mod builder;
pub mod changes;
mod enrolments;
mod former;
mod hosts;
mod index;
#[cfg(test)]
mod large;
pub(crate) mod looks;
mod models;
mod parts;
pub(crate) mod state;
mod users;
mod writes;

pub use builder::RootBuilder;
pub use enrolments::Enrolments;
pub use former::SharedParts;
pub use state::ModelState;
pub(crate) use state::{SecretDue, StateDifferences};

/// The whole state of a controller, at one revision.
#[derive(Debug, Clone, Default)]
pub struct Root {
    revision: Revision,
    controller: Option<Arc<Controller>>,
    agents: OrdMap<AgentName, Arc<Agent>>,
    enrolments: OrdMap<AgentName, Arc<Enrolment>>,
    join_tokens: JoinTokenIndex,
    pools: OrdMap<AgentName, Arc<AgentPool>>,
    charms: OrdMap<Digest, Arc<Charm>>,
    contents: OrdMap<Digest, Arc<ResourceContent>>,
    part_index: PartIndex,
    users: OrdMap<UserName, Arc<User>>,
    user_index: UserIndex,
    sessions: OrdMap<Digest, Arc<Session>>,
    session_index: SessionIndex,
    audit_heads: OrdMap<u8, Arc<AuditHead>>,
    answers: OrdMap<AnswerKey, Arc<KeptAnswer>>,
    answer_index: AnswerIndex,
    models: OrdMap<ModelUuid, Arc<ModelState>>,
    model_index: ModelIndex,
    hosts: HostIndex,
    /// The models that migrate, have moved, or come from another controller, and those that stay and of which the other
    /// controller is yet to be told.
    migrating: OrdSet<ModelUuid>,
    /// The models in which the controller has something to do.
    busy: OrdSet<ModelUuid>,
    /// The cross-model relations of which the first model may not have copied all changes of the other model.
    behind: OrdSet<(ModelUuid, CrossModelId)>,
    leases: OrdMap<(ModelUuid, ApplicationName), u64>,
    lapses: OrdSet<(u64, ModelUuid, ApplicationName)>,
    presence: OrdMap<AgentName, Presence>,
}

/// The connection state of an agent. It is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// True if the agent is connected.
    pub connected: bool,
    /// The time at which the controller last heard from the agent, for people.
    pub last_seen: Timestamp,
    /// The same in milliseconds of the controller's monotonic clock. No change of the wall clock makes an agent count as
    /// gone, or as alive.
    pub since_ms: u64,
}

/// An error of stored entities that make no valid state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The entity under a key is of another kind, or has another key.
    #[error("the entity under {0:?} is another one")]
    Misplaced(Box<EntityKey>),
    /// An entity belongs to a model whose own entity is missing.
    #[error("{0:?} belongs to a model that does not exist")]
    Orphan(Box<EntityKey>),
}

impl Root {
    /// Builds the state from stored entities, given in any order; see [`RootBuilder`] for those that come in parts.
    pub fn from_entities(
        entities: impl IntoIterator<Item = (EntityKey, Entity)>,
        revision: Revision,
    ) -> Result<Self, LoadError> {
        let mut builder = RootBuilder::default();
        for (key, entity) in entities {
            builder.add(key, entity)?;
        }
        builder.finish(revision)
    }

    /// Returns the state after the changes that a command made from this state.
    pub fn apply(&self, changes: &Changes, revision: Revision) -> Self {
        let mut next = self.clone();
        next.revision = revision;
        for (key, entity) in &changes.puts {
            next.put(key, entity.as_ref());
        }
        for change in &changes.volatile {
            next.apply_volatile(change);
        }
        next
    }

    /// Returns the state after writes that another controller's writer made, in one or several commands.
    pub fn replay(&self, changes: &Changes, revision: Revision) -> Self {
        let mut next = self.clone();
        next.revision = revision;
        let makes_model = |key: &EntityKey, entity: &Option<Entity>| {
            entity.is_some() && matches!(key, EntityKey::InModel(_, ModelKey::Model))
        };
        // A command that adds a model comes before those that write in it; a batch is ordered by key.
        let (models, rest): (Vec<_>, Vec<_>) =
            changes.puts.iter().partition(|(key, entity)| makes_model(key, entity));
        for (key, entity) in models.into_iter().chain(rest) {
            next.put(key, entity.as_ref());
        }
        next
    }

    /// Returns the state after a restart of the controller, or once this controller leads. The remaining times of the leases are lost, so each
    /// leader gets a full new lease before another unit may claim (`docs/design/leases.md`). Each agent gets the
    /// grace period for its reconnect.
    pub fn restart(&self, now: Timestamp, lease_now_ms: u64) -> Self {
        let mut next = self.clone();
        (next.leases, next.lapses) = (OrdMap::new(), OrdSet::new());
        for name in self.agents.keys() {
            let presence = Presence { connected: false, last_seen: now, since_ms: lease_now_ms };
            next.presence.insert(name.clone(), presence);
        }
        for (uuid, state) in &self.models {
            for application in state.applications().filter(|application| application.leader.is_some()) {
                let expires = lease_now_ms.saturating_add(LEASE_AFTER_RESTART_MS);
                next.set_lease(*uuid, &application.name, Some(expires));
            }
        }
        next
    }

    /// Returns the state's revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the controller, or none before its initialization.
    pub fn controller(&self) -> Option<&Controller> {
        self.controller.as_deref()
    }

    /// Returns a registered agent.
    pub fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.agents.get(name).map(Arc::as_ref)
    }

    /// Returns all registered agents, by name.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().map(Arc::as_ref)
    }

    /// Returns the number of registered agents.
    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }

    /// Returns the connection state of an agent, if the agent is known.
    pub fn presence(&self, name: &AgentName) -> Option<Presence> {
        self.presence.get(name).copied()
    }

    /// Returns true if an agent is connected, or disconnected for less than the grace period, by the controller's
    /// monotonic clock.
    pub fn is_alive(&self, name: &AgentName, lease_now_ms: u64) -> bool {
        self.presence(name).is_some_and(|presence| {
            presence.connected || lease_now_ms.saturating_sub(presence.since_ms) < AGENT_GRACE_MS
        })
    }

    /// Returns true if both states have the same agents and connections. Cheap: it compares pointers. A `false` may
    /// be wrong, a `true` never is.
    pub fn knows_the_same_agents(&self, other: &Self) -> bool {
        self.agents.ptr_eq(&other.agents) && self.presence.ptr_eq(&other.presence)
    }

    /// Returns the end of the audit log, or none if it is empty.
    pub fn audit_head(&self) -> Option<&AuditHead> {
        self.audit_heads.get(&0).map(Arc::as_ref)
    }

    /// Returns an uploaded charm.
    pub fn charm(&self, digest: &Digest) -> Option<&Charm> {
        self.charms.get(digest).map(Arc::as_ref)
    }

    /// Returns true if the metadata of a charm that a model uses differs in a later state: a newer program has read it
    /// again. If any charm was written, it looks at those of the model: it compares pointers, and metadata that was written.
    pub(crate) fn reads_charms_otherwise(&self, newer: &Self, state: &ModelState) -> bool {
        let differs = |digest: &Digest| match (self.charms.get(digest), newer.charms.get(digest)) {
            (Some(old), Some(new)) => !Arc::ptr_eq(old, new) && old.meta != new.meta,
            _ => false,
        };
        !self.charms.ptr_eq(&newer.charms) && state.charms().any(|charm| differs(&charm.digest))
    }

    /// Returns all uploaded charms.
    pub fn charms(&self) -> impl Iterator<Item = &Charm> {
        self.charms.values().map(Arc::as_ref)
    }

    /// Returns the uploaded content of this digest, which resources may have.
    pub fn resource_content(&self, digest: &Digest) -> Option<&ResourceContent> {
        self.contents.get(digest).map(Arc::as_ref)
    }

    /// Returns all content that was uploaded for resources.
    pub fn resource_contents(&self) -> impl Iterator<Item = &ResourceContent> {
        self.contents.values().map(Arc::as_ref)
    }

    /// Returns a model's state. The remains of a destroyed model do not count, nor do models that have moved to another
    /// controller or have not arrived yet.
    pub fn model(&self, uuid: &ModelUuid) -> Option<&Arc<ModelState>> {
        self.models.get(uuid).filter(|state| !state.is_hidden())
    }

    /// Returns all models, without the remains of destroyed ones, those that have moved, and those that have not arrived.
    pub fn models(&self) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        self.models_and_remains().filter(|(_, state)| !state.is_hidden())
    }

    /// Returns the models that migrate, have moved, or come from another controller, and those that stay and of which the
    /// other controller is yet to be told.
    pub fn migrating_models(&self) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        self.migrating.iter().filter_map(|uuid| self.models.get_key_value(uuid))
    }

    /// Returns a model's state, or its remains after a forced destruction: storage on agents' disks that the agents
    /// delete when they reconnect. Only agents see remains, and the model's name is free. Models that have moved, and those
    /// that have not arrived, count as well.
    pub fn model_or_remains(&self, uuid: &ModelUuid) -> Option<&Arc<ModelState>> {
        self.models.get(uuid)
    }

    /// Returns a model whose units' hooks may read: also one that has moved, until its agents have gone.
    pub(crate) fn model_for_runner(&self, uuid: &ModelUuid) -> Option<&Arc<ModelState>> {
        self.models.get(uuid).filter(|state| !state.is_remains())
    }

    /// Returns all models, and the remains of destroyed ones.
    pub fn models_and_remains(&self) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        self.models.iter().inspect(|_| looks::note())
    }

    /// Returns the time at which an application's leadership lease expires, in milliseconds of the controller's
    /// monotonic clock.
    pub fn lease(&self, model: &ModelUuid, application: &ApplicationName) -> Option<u64> {
        self.leases.get(&(*model, application.clone())).copied()
    }

    /// Returns true if an application has a leader whose lease has not expired.
    pub fn lease_holds(&self, model: &ModelUuid, application: &ApplicationName, lease_now_ms: u64) -> bool {
        self.lease(model, application).is_some_and(|expires| expires > lease_now_ms)
    }

    /// Returns true if a runner's or operator's view is the same in `newer`: nothing that the view is made of has
    /// changed. Cheap: it compares pointers, and the charms that were written. A `false` may be wrong, a `true` never is.
    pub fn looks_the_same(&self, newer: &Self, caller: &Caller, model: &ModelUuid) -> bool {
        let same_model = match (self.models.get(model), newer.models.get(model)) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        let state = newer.models.get(model);
        same_model
            && !state.is_some_and(|state| self.reads_charms_otherwise(newer, state))
            && match caller {
                Caller::Runner { agent, .. } => match (self.agents.get(agent), newer.agents.get(agent)) {
                    (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                    (None, None) => true,
                    _ => false,
                },
                Caller::User(_) | Caller::Agent(_) | Caller::Worker => self.knows_the_same_agents(newer),
            }
    }

    /// Returns the models in which the controller has something to do, beginning with those after `last`.
    pub(crate) fn busy_models_after(
        &self,
        last: Option<&ModelUuid>,
    ) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        let nil = ModelUuid(uuid::Uuid::nil());
        let last = *last.unwrap_or(&nil);
        let behind = self.busy.range((Bound::Excluded(last), Bound::Unbounded));
        behind.chain(self.busy.range(..=last)).filter_map(|uuid| self.models.get_key_value(uuid))
    }

    /// Returns the cross-model relations of which a model may not have copied all changes.
    pub(crate) fn behind(&self, model: ModelUuid) -> impl Iterator<Item = CrossModelId> {
        let first = CrossModelId { consumer: ModelUuid(uuid::Uuid::nil()), relation: RelationId(0) };
        let all = self.behind.range((model, first)..).take_while(move |(of, _)| *of == model);
        all.map(|(_, id)| *id)
    }

    /// Returns the leases in the order in which they expire.
    pub(crate) fn lapses(&self) -> impl Iterator<Item = &(u64, ModelUuid, ApplicationName)> {
        self.lapses.iter()
    }

    /// Returns the current leader term of an application, if it has a leader.
    pub fn leader_term(&self, model: &ModelUuid, application: &ApplicationName) -> Option<LeaderTerm> {
        Some(self.model(model)?.application(application)?.leader.as_ref()?.term)
    }
}
