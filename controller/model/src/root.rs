//! The whole state of a controller at one revision, as persistent maps: a clone costs nothing, and what did not
//! change is shared.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use imbl::{OrdMap, OrdSet};
use periapt_host_api::{
    AgentName, ApplicationName, CharmDigest, LeaderTerm, ModelName, ModelUuid, Revision, Timestamp, UserName,
    command::Caller,
};

use crate::{
    changes::{Changes, VolatileChange},
    entity::{Agent, Charm, Controller, Entity, EntityKey, ModelKey, ResourceContent},
};

mod index;
mod state;

pub use state::ModelState;
pub(crate) use state::{Bell, Touched};

/// For how long an agent that lost its connection is still taken for alive: a reconnect takes less.
pub const GRACE_SECONDS: i64 = 30;

/// How long a lease holds after a restart of the controller: the longest that could have been given.
pub const RESTART_LEASE_MS: u64 = 60_000;

/// All that the controller knows, at one revision.
#[derive(Debug, Clone, Default)]
pub struct Root {
    revision: Revision,
    controller: Option<Arc<Controller>>,
    agents: OrdMap<AgentName, Arc<Agent>>,
    charms: OrdMap<CharmDigest, Arc<Charm>>,
    contents: OrdMap<CharmDigest, Arc<ResourceContent>>,
    models: OrdMap<ModelUuid, Arc<ModelState>>,
    /// Models in which the controller has something to do.
    busy: OrdSet<ModelUuid>,
    leases: OrdMap<(ModelUuid, ApplicationName), u64>,
    lapses: OrdSet<(u64, ModelUuid, ApplicationName)>,
    presence: OrdMap<AgentName, Presence>,
}

/// What is known of an agent's connection. Not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Whether it is connected.
    pub connected: bool,
    /// When it was last heard of.
    pub last_seen: Timestamp,
}

/// Why stored entities make no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The entity under a key is of another kind, or names itself otherwise.
    #[error("the entity under {0:?} is another one")]
    Misplaced(Box<EntityKey>),
    /// Something of a model whose own entity is missing.
    #[error("{0:?} belongs to a model that is not there")]
    Orphan(Box<EntityKey>),
}

impl Root {
    /// The state that stored entities make, in any order.
    pub fn from_entities(
        entities: impl IntoIterator<Item = (EntityKey, Entity)>,
        revision: Revision,
    ) -> Result<Self, LoadError> {
        let mut root = Self { revision, ..Self::default() };
        let mut entities: Vec<_> = entities.into_iter().collect();
        // Sorted, a model's own entity comes before all else of the model.
        entities.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (key, entity) in entities {
            if !entity.stands_under(&key) {
                return Err(LoadError::Misplaced(Box::new(key)));
            }
            if let EntityKey::InModel(uuid, inner) = &key
                && *inner != ModelKey::Model
                && !root.models.contains_key(uuid)
            {
                return Err(LoadError::Orphan(Box::new(key)));
            }
            root.put(&key, Some(&entity));
        }
        Ok(root)
    }

    /// The state after some changes, which a command made from this state.
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

    /// After a start of the controller: nobody knows when the stored holders' leases lapse, so each gets a full
    /// new one before anybody else may claim (`design.md` section 7); and each agent gets the time that a
    /// reconnect takes.
    pub fn restart(&self, now: Timestamp, lease_now_ms: u64) -> Self {
        let mut next = self.clone();
        for name in self.agents.keys() {
            next.presence.insert(name.clone(), Presence { connected: false, last_seen: now });
        }
        for (uuid, state) in &self.models {
            for application in state.applications().filter(|application| application.leader.is_some()) {
                let expires = lease_now_ms.saturating_add(RESTART_LEASE_MS);
                next.set_lease(*uuid, &application.name, Some(expires));
            }
        }
        next
    }

    /// Where it stands.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The controller; none before it was initialised.
    pub fn controller(&self) -> Option<&Controller> {
        self.controller.as_deref()
    }

    /// A registered agent.
    pub fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.agents.get(name).map(Arc::as_ref)
    }

    /// All registered agents, by name.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().map(Arc::as_ref)
    }

    /// What is known of an agent's connection.
    pub fn presence(&self, name: &AgentName) -> Option<Presence> {
        self.presence.get(name).copied()
    }

    /// Whether an agent is there: connected, or gone for no longer than a reconnect takes. One that was seen last in
    /// what is the future, since the clock was set back, is gone: else it would be there until that has come.
    pub fn is_alive(&self, name: &AgentName, now: Timestamp) -> bool {
        let grace = jiff::SignedDuration::from_secs(GRACE_SECONDS);
        self.presence(name).is_some_and(|presence| {
            presence.connected || now.duration_since(presence.last_seen).abs() < grace
        })
    }

    /// An uploaded charm.
    pub fn charm(&self, digest: &CharmDigest) -> Option<&Charm> {
        self.charms.get(digest).map(Arc::as_ref)
    }

    /// All uploaded charms.
    pub fn charms(&self) -> impl Iterator<Item = &Charm> {
        self.charms.values().map(Arc::as_ref)
    }

    /// Whether some model uses a charm: an application wants it, or a unit still runs it.
    pub fn uses_charm(&self, digest: &CharmDigest) -> bool {
        self.models.values().any(|state| state.charm(digest).is_some())
    }

    /// Content that was uploaded for resources.
    pub fn resource_content(&self, digest: &CharmDigest) -> Option<&ResourceContent> {
        self.contents.get(digest).map(Arc::as_ref)
    }

    /// All content that was uploaded for resources.
    pub fn resource_contents(&self) -> impl Iterator<Item = &ResourceContent> {
        self.contents.values().map(Arc::as_ref)
    }

    /// The content that some application's resource has now.
    pub fn attached_contents(&self) -> BTreeSet<CharmDigest> {
        let applications = self.models.values().flat_map(|state| state.applications());
        let attached = applications.flat_map(|application| application.resources.values());
        attached.map(|resource| resource.current.digest).collect()
    }

    /// A model's state.
    pub fn model(&self, uuid: &ModelUuid) -> Option<&Arc<ModelState>> {
        self.models.get(uuid)
    }

    /// All models.
    pub fn models(&self) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        self.models.iter()
    }

    /// A model by its owner and name.
    pub fn model_named(&self, owner: &UserName, name: &ModelName) -> Option<&Arc<ModelState>> {
        self.models.values().find(|state| state.model().owner == *owner && state.model().name == *name)
    }

    /// When an application's lease lapses, on the controller's monotonic clock.
    pub fn lease(&self, model: &ModelUuid, application: &ApplicationName) -> Option<u64> {
        self.leases.get(&(*model, application.clone())).copied()
    }

    /// Whether an application's leadership is held by somebody whose lease has not lapsed.
    pub fn lease_holds(&self, model: &ModelUuid, application: &ApplicationName, lease_now_ms: u64) -> bool {
        self.lease(model, application).is_some_and(|expires| expires > lease_now_ms)
    }

    /// Whether a runner or an operator sees in `newer` what it sees here: nothing that its view is made of was
    /// touched. Cheap: pointers are compared. A `false` may be wrong, a `true` never is.
    pub fn looks_the_same(&self, newer: &Self, caller: &Caller, model: &ModelUuid) -> bool {
        let same_model = match (self.models.get(model), newer.models.get(model)) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        same_model
            && match caller {
                Caller::Runner { agent, .. } => match (self.agents.get(agent), newer.agents.get(agent)) {
                    (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                    (None, None) => true,
                    _ => false,
                },
                Caller::User(_) | Caller::Agent(_) | Caller::Worker => {
                    self.agents.ptr_eq(&newer.agents) && self.presence.ptr_eq(&newer.presence)
                }
            }
    }

    /// Models in which the controller has something to do, those behind `last` first.
    pub(crate) fn busy_models_after(
        &self,
        last: Option<&ModelUuid>,
    ) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        let nil = ModelUuid(uuid::Uuid::nil());
        let last = *last.unwrap_or(&nil);
        let behind = self.busy.range((Bound::Excluded(last), Bound::Unbounded));
        behind.chain(self.busy.range(..=last)).filter_map(|uuid| self.models.get_key_value(uuid))
    }

    /// Leases in the order in which they lapse.
    pub(crate) fn lapses(&self) -> impl Iterator<Item = &(u64, ModelUuid, ApplicationName)> {
        self.lapses.iter()
    }

    /// The term of whoever leads an application.
    pub fn leader_term(&self, model: &ModelUuid, application: &ApplicationName) -> Option<LeaderTerm> {
        Some(self.model(model)?.application(application)?.leader.as_ref()?.term)
    }

    fn put(&mut self, key: &EntityKey, entity: Option<&Entity>) {
        match (key, entity) {
            (EntityKey::Controller, Some(Entity::Controller(controller))) => {
                self.controller = Some(Arc::clone(controller));
            }
            (EntityKey::Controller, _) => self.controller = None,
            (EntityKey::Agent(name), Some(Entity::Agent(agent))) => {
                self.agents.insert(name.clone(), Arc::clone(agent));
            }
            (EntityKey::Agent(name), _) => {
                self.agents.remove(name);
            }
            (EntityKey::Charm(digest), Some(Entity::Charm(charm))) => {
                self.charms.insert(*digest, Arc::clone(charm));
            }
            (EntityKey::Charm(digest), _) => {
                self.charms.remove(digest);
            }
            (EntityKey::ResourceContent(digest), Some(Entity::ResourceContent(content))) => {
                self.contents.insert(*digest, Arc::clone(content));
            }
            (EntityKey::ResourceContent(digest), _) => {
                self.contents.remove(digest);
            }
            (EntityKey::InModel(uuid, inner), entity) => self.put_in_model(*uuid, inner, entity),
        }
    }

    fn put_in_model(&mut self, uuid: ModelUuid, key: &ModelKey, entity: Option<&Entity>) {
        match (key, entity) {
            (ModelKey::Model, Some(Entity::Model(model))) => match self.models.get_mut(&uuid) {
                Some(state) => Arc::make_mut(state).set_model(Arc::clone(model)),
                None => {
                    self.models.insert(uuid, Arc::new(ModelState::new(Arc::clone(model))));
                }
            },
            (ModelKey::Model, _) => {
                self.models.remove(&uuid);
            }
            (key, entity) => {
                if let Some(state) = self.models.get_mut(&uuid) {
                    Arc::make_mut(state).put(key, entity);
                }
            }
        }
        if self.models.get(&uuid).is_some_and(|state| state.has_work()) {
            self.busy.insert(uuid);
        } else {
            self.busy.remove(&uuid);
        }
    }

    fn apply_volatile(&mut self, change: &VolatileChange) {
        match change {
            VolatileChange::Lease { model, application, expires_ms } => {
                self.set_lease(*model, application, *expires_ms);
            }
            VolatileChange::Presence { agent, connected, at } => {
                self.presence.insert(agent.clone(), Presence { connected: *connected, last_seen: *at });
            }
        }
    }

    fn set_lease(&mut self, model: ModelUuid, application: &ApplicationName, expires_ms: Option<u64>) {
        let key = (model, application.clone());
        if let Some(old) = self.leases.remove(&key) {
            self.lapses.remove(&(old, model, application.clone()));
        }
        if let Some(expires) = expires_ms {
            self.lapses.insert((expires, model, application.clone()));
            self.leases.insert(key, expires);
        }
    }
}
