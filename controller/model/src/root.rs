//! The whole state of a controller at one revision, as persistent maps: a clone costs nothing, and what did not
//! change is shared.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use imbl::{OrdMap, OrdSet};
use periapt_host_api::{
    AgentName, ApplicationName, Digest, LeaderTerm, ModelName, ModelUuid, RelationId, Revision, Timestamp,
    UserName,
    command::Caller,
    relation::BagOwner,
    settings::ModelSettings,
    timing::{AGENT_GRACE, LEASE_AFTER_RESTART_MS},
};

use crate::entity::{Agent, Charm, Controller, CrossId, Entity, EntityKey, ModelKey, ResourceContent, kinds};
use changes::{Changes, CrossNews, VolatileChange};

pub mod changes;
mod index;
pub(crate) mod state;

pub use state::ModelState;
pub(crate) use state::{SecretDue, Touched};

/// All that the controller knows, at one revision.
#[derive(Debug, Clone, Default)]
pub struct Root {
    revision: Revision,
    controller: Option<Arc<Controller>>,
    agents: OrdMap<AgentName, Arc<Agent>>,
    charms: OrdMap<Digest, Arc<Charm>>,
    contents: OrdMap<Digest, Arc<ResourceContent>>,
    models: OrdMap<ModelUuid, Arc<ModelState>>,
    /// Models in which the controller has something to do.
    busy: OrdSet<ModelUuid>,
    /// Relations across models of which the model named first may not have copied all that the other one did.
    behind: OrdSet<(ModelUuid, CrossId)>,
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
        let is_model = |key: &EntityKey| matches!(key, EntityKey::InModel(_, ModelKey::Model));
        let (models, mut rest): (Vec<_>, Vec<_>) = entities.into_iter().partition(|(key, _)| is_model(key));
        // Sorted, a relation comes before its members and bags.
        rest.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (key, entity) in models.into_iter().chain(rest) {
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
        root.note_all_crossings();
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
    /// new one before anybody else may claim (`docs/design/leases.md`); and each agent gets the time that a
    /// reconnect takes.
    pub fn restart(&self, now: Timestamp, lease_now_ms: u64) -> Self {
        let mut next = self.clone();
        for name in self.agents.keys() {
            next.presence.insert(name.clone(), Presence { connected: false, last_seen: now });
        }
        for (uuid, state) in &self.models {
            for application in state.applications().filter(|application| application.leader.is_some()) {
                let expires = lease_now_ms.saturating_add(LEASE_AFTER_RESTART_MS);
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
        self.presence(name).is_some_and(|presence| {
            presence.connected || now.duration_since(presence.last_seen).unsigned_abs() < AGENT_GRACE
        })
    }

    /// Whether the same is known of agents and their connections. Cheap: pointers are compared. A `false` may be wrong, a
    /// `true` never is.
    pub fn knows_the_same_agents(&self, other: &Self) -> bool {
        self.agents.ptr_eq(&other.agents) && self.presence.ptr_eq(&other.presence)
    }

    /// An uploaded charm.
    pub fn charm(&self, digest: &Digest) -> Option<&Charm> {
        self.charms.get(digest).map(Arc::as_ref)
    }

    /// All uploaded charms.
    pub fn charms(&self) -> impl Iterator<Item = &Charm> {
        self.charms.values().map(Arc::as_ref)
    }

    /// Whether some model uses a charm: an application wants it, or a unit still runs it.
    pub fn uses_charm(&self, digest: &Digest) -> bool {
        self.models.values().any(|state| state.charm(digest).is_some())
    }

    /// Content that was uploaded for resources.
    pub fn resource_content(&self, digest: &Digest) -> Option<&ResourceContent> {
        self.contents.get(digest).map(Arc::as_ref)
    }

    /// All content that was uploaded for resources.
    pub fn resource_contents(&self) -> impl Iterator<Item = &ResourceContent> {
        self.contents.values().map(Arc::as_ref)
    }

    /// The content that some application's resource has now.
    pub fn attached_contents(&self) -> BTreeSet<Digest> {
        let applications = self.models.values().flat_map(|state| state.applications());
        let attached = applications.flat_map(|application| application.resources.values());
        attached.map(|resource| resource.current.digest).collect()
    }

    /// A model's state.
    pub fn model(&self, uuid: &ModelUuid) -> Option<&Arc<ModelState>> {
        self.models.get(uuid).filter(|state| !state.is_remains())
    }

    /// All models.
    pub fn models(&self) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        self.models.iter().filter(|(_, state)| !state.is_remains())
    }

    /// The same, or what remains of a model that was destroyed by force: files on the disks of agents, which are to
    /// delete them when they are back. Nobody else knows of it, and its name is free.
    pub fn model_or_remains(&self, uuid: &ModelUuid) -> Option<&Arc<ModelState>> {
        self.models.get(uuid)
    }

    /// All models, and what remains of others.
    pub fn models_and_remains(&self) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        self.models.iter()
    }

    /// A model by its owner and name.
    pub fn model_named(&self, owner: &UserName, name: &ModelName) -> Option<&Arc<ModelState>> {
        let named = |state: &&Arc<ModelState>| {
            state.model().owner == *owner && state.model().name == *name && !state.is_remains()
        };
        self.models.values().find(named)
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
                Caller::User(_) | Caller::Agent(_) | Caller::Worker => self.knows_the_same_agents(newer),
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

    /// The relations across models of which a model may not have copied all.
    pub(crate) fn behind(&self, model: ModelUuid) -> impl Iterator<Item = CrossId> {
        let first = CrossId { consumer: ModelUuid(uuid::Uuid::nil()), relation: RelationId(0) };
        let all = self.behind.range((model, first)..).take_while(move |(of, _)| *of == model);
        all.map(|(_, id)| *id)
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
                self.hand_down_defaults();
            }
            (EntityKey::Controller, _) => self.controller = None,
            (EntityKey::InModel(uuid, inner), entity) => self.put_in_model(*uuid, inner, entity),
            (key, entity) => self.put_in_table(key, entity),
        }
    }

    /// What the controller sets for all models.
    fn model_defaults(&self) -> Arc<ModelSettings> {
        Arc::new(
            self.controller.as_ref().map(|controller| controller.model_defaults.clone()).unwrap_or_default(),
        )
    }

    /// Each model derives its configuration anew, in memory alone: however many there are, one entity is written.
    fn hand_down_defaults(&mut self) {
        let defaults = self.model_defaults();
        let behind = |(_, state): &(&ModelUuid, &Arc<ModelState>)| *state.defaults() != *defaults;
        let behind: Vec<ModelUuid> = self.models.iter().filter(behind).map(|(uuid, _)| *uuid).collect();
        for uuid in behind {
            if let Some(state) = self.models.get_mut(&uuid) {
                Arc::make_mut(state).set_defaults(Arc::clone(&defaults));
            }
        }
    }

    fn put_in_model(&mut self, uuid: ModelUuid, key: &ModelKey, entity: Option<&Entity>) {
        if let Some(news) = self.models.get(&uuid).and_then(|state| news_for(state, key, entity)) {
            self.note_behind(news);
        }
        match (key, entity) {
            (ModelKey::Model, Some(Entity::Model(model))) => match self.models.get_mut(&uuid) {
                Some(state) => Arc::make_mut(state).set_model(Arc::clone(model)),
                None => {
                    let state = ModelState::new(Arc::clone(model), self.model_defaults());
                    self.models.insert(uuid, Arc::new(state));
                }
            },
            (ModelKey::Model, _) => {
                self.models.remove(&uuid);
                let left: Vec<_> = self.behind(uuid).collect();
                for id in left {
                    self.behind.remove(&(uuid, id));
                    self.note_behind((uuid, id));
                }
            }
            (key, entity) => {
                if let Some(state) = self.models.get_mut(&uuid) {
                    Arc::make_mut(state).put(key, entity);
                }
            }
        }
        self.note_work(uuid);
    }

    fn note_work(&mut self, uuid: ModelUuid) {
        let has_work = self.models.get(&uuid).is_some_and(|state| state.has_work());
        if has_work || self.behind(uuid).next().is_some() {
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
            VolatileChange::Crossing { model, relation, news: CrossNews::Some } => {
                self.note_behind((*model, *relation));
            }
            VolatileChange::Crossing { model, relation, news: CrossNews::None } => {
                self.behind.remove(&(*model, *relation));
                self.note_work(*model);
            }
            VolatileChange::Presence { agent, connected, at } => {
                self.presence.insert(agent.clone(), Presence { connected: *connected, last_seen: *at });
            }
        }
    }

    /// Nobody remembers what was copied before a start: both sides look at all that they share.
    fn note_all_crossings(&mut self) {
        let models = self.models.iter();
        let shared = models.flat_map(|(uuid, state)| {
            let crosses = state.relations().filter_map(|relation| relation.cross.as_ref());
            crosses.flat_map(|cross| [(*uuid, cross.id), (cross.other_model(), cross.id)])
        });
        for news in shared.collect::<Vec<_>>() {
            self.note_behind(news);
        }
    }

    /// A model is to look at a relation across models. If it is gone, the consumer is, which finds nothing there.
    fn note_behind(&mut self, (model, id): (ModelUuid, CrossId)) {
        let looks = [model, id.consumer].into_iter().find(|model| self.models.contains_key(model));
        if let Some(looks) = looks {
            self.behind.insert((looks, id));
            self.busy.insert(looks);
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

macro_rules! tables {
    (
        controller { $($(#[$doc:meta])* $kind:ident: $key:ident($field:ident: $type:ty) { table $table:ident })* }
        model $model:tt
    ) => {
        impl Root {
            /// Puts an entity of no model in its place or takes it away.
            fn put_in_table(&mut self, key: &EntityKey, entity: Option<&Entity>) {
                match (key, entity) {
                    $((EntityKey::$key(key), Some(Entity::$kind(entity))) => {
                        self.$table.insert(Clone::clone(key), Arc::clone(entity));
                    }
                    (EntityKey::$key(key), _) => {
                        self.$table.remove(key);
                    })*
                    // Neither stands in a table.
                    (EntityKey::Controller | EntityKey::InModel(..), _) => {}
                }
            }
        }
    };
}

kinds!(tables);

/// Who is to look at what because of a write in a relation across models: the other model. What is copied from there
/// is no news to it.
fn news_for(state: &ModelState, key: &ModelKey, entity: Option<&Entity>) -> Option<(ModelUuid, CrossId)> {
    let (id, of) = match key {
        ModelKey::Relation(id) => (id, None),
        ModelKey::Member(id, unit) => (id, Some(unit.application())),
        ModelKey::Bag(key) => match &key.owner {
            BagOwner::Unit(unit) => (&key.relation, Some(unit.application())),
            BagOwner::Application(application) => (&key.relation, Some(application)),
        },
        _ => return None,
    };
    let cross = match entity {
        Some(Entity::Relation(relation)) => relation.cross.as_ref(),
        _ => state.relation(id).and_then(|relation| relation.cross.as_ref()),
    }?;
    (of != Some(&cross.remote)).then(|| (cross.other_model(), cross.id))
}
