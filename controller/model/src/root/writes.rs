//! The writes to a state: an entity that is put or deleted, with what is derived from it, and what is in memory alone.

use std::sync::Arc;

use periapt_host_api::{ApplicationName, ModelUuid, relation::BagOwner, settings::ModelSettings};

use super::{
    ModelState, Root,
    changes::{CrossModelCopy, VolatileChange},
    hosts, models,
};
use crate::entity::{CrossModelId, Entity, EntityKey, ModelKey, kinds};

impl Root {
    pub(super) fn put(&mut self, key: &EntityKey, entity: Option<&Entity>) {
        match (key, entity) {
            (EntityKey::Controller, Some(Entity::Controller(controller))) => {
                self.controller = Some(Arc::clone(controller));
                self.hand_down_defaults();
            }
            (EntityKey::Controller, _) => self.controller = None,
            (EntityKey::InModel(uuid, inner), entity) => self.put_in_model(*uuid, inner, entity),
            (EntityKey::User(name), entity) => {
                let new = match entity {
                    Some(Entity::User(user)) => Some(user),
                    _ => None,
                };
                self.user_index.update(self.users.get(name), new);
                self.put_in_table(key, entity);
            }
            (EntityKey::Session(token), entity) => {
                let new = match entity {
                    Some(Entity::Session(session)) => Some(session),
                    _ => None,
                };
                self.session_index.update(self.sessions.get(token), new);
                self.put_in_table(key, entity);
            }
            (EntityKey::Answer(answer), entity) => {
                let new = match entity {
                    Some(Entity::KeptAnswer(kept)) => Some(kept),
                    _ => None,
                };
                self.answer_index.update(self.answers.get(answer), new);
                self.put_in_table(key, entity);
            }
            (EntityKey::Enrolment(agent), entity) => {
                let new = match entity {
                    Some(Entity::Enrolment(enrolment)) => Some(enrolment),
                    _ => None,
                };
                self.join_tokens.update(self.enrolments.get(agent), new);
                self.put_in_table(key, entity);
            }
            (EntityKey::ResourceContent(digest), entity) => {
                let new = match entity {
                    Some(Entity::ResourceContent(content)) => Some(content),
                    _ => None,
                };
                self.part_index.update(self.contents.get(digest), new);
                self.put_in_table(key, entity);
            }
            (key, entity) => self.put_in_table(key, entity),
        }
    }

    /// Returns the controller's settings for all models.
    fn model_defaults(&self) -> Arc<ModelSettings> {
        Arc::new(
            self.controller.as_ref().map(|controller| controller.model_defaults.clone()).unwrap_or_default(),
        )
    }

    /// Updates the configuration of every model in memory. Only the controller's entity is written, however many
    /// models there are.
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
        if let Some(relation) =
            self.models.get(&uuid).and_then(|state| copied_relation_of(state, key, entity))
        {
            self.note_behind(relation);
        }
        let old = self.models.get(&uuid).and_then(|state| models::part(state, key));
        let agent_before = self.models.get(&uuid).and_then(|state| hosts::agent_of(state, key));
        match (key, entity) {
            (ModelKey::Model, Some(Entity::Model(model))) => match self.models.get_mut(&uuid) {
                Some(state) => Arc::make_mut(state).set_model(Arc::clone(model)),
                None => {
                    let state = ModelState::new(Arc::clone(model), self.model_defaults());
                    self.models.insert(uuid, Arc::new(state));
                }
            },
            (ModelKey::Model, _) => {
                // The commit that deletes a model may also delete its last relations. They come after it in the order
                // of keys, so the other models must hear of them here.
                let gone = self.models.remove(&uuid);
                if let Some(state) = &gone {
                    self.model_index.forget(uuid, state);
                    self.hosts.forget(uuid, state);
                }
                let relations = gone.iter().flat_map(|state| state.relations());
                let crosses = relations.filter_map(|relation| relation.cross.as_ref());
                let behind: Vec<_> = crosses.map(|cross| (cross.other_model(), cross.id)).collect();
                for relation in behind {
                    self.note_behind(relation);
                }
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
        if *key == ModelKey::Model {
            if self.models.get(&uuid).is_some_and(|state| state.is_migrating()) {
                self.migrating.insert(uuid);
            } else {
                self.migrating.remove(&uuid);
            }
        }
        if let Some(state) = self.models.get(&uuid) {
            self.model_index.update(uuid, old, models::part(state, key));
            let agent = hosts::agent_of(state, key);
            let agent_before = agent_before.filter(|before| agent.as_ref() != Some(before));
            for agent in [agent_before, agent].iter().flatten() {
                self.hosts.update(agent, uuid, Some(state));
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

    pub(super) fn apply_volatile(&mut self, change: &VolatileChange) {
        match change {
            VolatileChange::Lease { model, application, expires_ms } => {
                self.set_lease(*model, application, *expires_ms);
            }
            VolatileChange::Crossing { model, relation, copy: CrossModelCopy::Behind } => {
                self.note_behind((*model, *relation));
            }
            VolatileChange::Crossing { model, relation, copy: CrossModelCopy::UpToDate } => {
                self.behind.remove(&(*model, *relation));
                self.note_work(*model);
            }
            VolatileChange::Presence { agent, presence } => {
                self.presence.insert(agent.clone(), *presence);
            }
        }
    }

    /// Marks every cross-model relation for both sides to look at: the progress of copies from before a start is
    /// lost.
    pub(super) fn note_all_crossings(&mut self) {
        let models = self.models.iter();
        let shared = models.flat_map(|(uuid, state)| {
            let crosses = state.relations().filter_map(|relation| relation.cross.as_ref());
            crosses.flat_map(|cross| [(*uuid, cross.id), (cross.other_model(), cross.id)])
        });
        for relation in shared.collect::<Vec<_>>() {
            self.note_behind(relation);
        }
    }

    /// Marks a cross-model relation for a model to look at. If that model is gone, the consumer looks, and finds it
    /// gone.
    fn note_behind(&mut self, (model, id): (ModelUuid, CrossModelId)) {
        let looks = [model, id.consumer].into_iter().find(|model| self.models.contains_key(model));
        if let Some(looks) = looks {
            self.behind.insert((looks, id));
            self.busy.insert(looks);
        }
    }

    pub(super) fn set_lease(
        &mut self,
        model: ModelUuid,
        application: &ApplicationName,
        expires_ms: Option<u64>,
    ) {
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
            /// Puts or deletes an entity that belongs to no model.
            fn put_in_table(&mut self, key: &EntityKey, entity: Option<&Entity>) {
                match (key, entity) {
                    $((EntityKey::$key(key), Some(Entity::$kind(entity))) => {
                        self.$table.insert(Clone::clone(key), Arc::clone(entity));
                    }
                    (EntityKey::$key(key), _) => {
                        self.$table.remove(key);
                    })*
                    // Neither is in a table.
                    (EntityKey::Controller | EntityKey::InModel(..), _) => {}
                }
            }
        }
    };
}

kinds!(tables);

/// Returns the model that must look at a cross-model relation after a write in it: the other model. Writes that were
/// copied from the other model are excluded.
fn copied_relation_of(
    state: &ModelState,
    key: &ModelKey,
    entity: Option<&Entity>,
) -> Option<(ModelUuid, CrossModelId)> {
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
