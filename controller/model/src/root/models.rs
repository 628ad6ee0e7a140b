//! The indexes over all models: the models of a name, of a user, of a charm and of a resource's content. No request
//! looks at every model to find its own.

use std::sync::Arc;

use periapt_host_api::{Digest, ModelName, ModelUuid, UserName, access::ModelAccess};
use uuid::Uuid;

use super::{
    ModelState, Root,
    index::{CountedIndex, Index},
    looks,
};
use crate::entity::{AttachedResource, ModelKey, User};

/// The indexes over all models.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelIndex {
    /// The owners and ids of the models of each name, without the remains of destroyed models.
    named: Index<ModelName, (UserName, ModelUuid)>,
    /// The models that each user was granted, by the user's id.
    granted: Index<Uuid, ModelUuid>,
    /// The same by the user's id and the model's name.
    granted_by_name: Index<(Uuid, ModelName), ModelUuid>,
    /// The models that each user was granted write access to, or more.
    writable: Index<Uuid, ModelUuid>,
    /// The models that use each charm, remains included.
    using_charm: Index<Digest, ModelUuid>,
    /// The models with a resource of each content, or that had one.
    with_content: CountedIndex<Digest, ModelUuid>,
    /// The models with offers that each user was granted, by the user's id.
    offered: CountedIndex<Uuid, ModelUuid>,
}

/// The part of the indexes that one entity of a model adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A model's name and owner.
    Name(ModelName, UserName),
    /// A grant: the user's id, the model's name and the access.
    Grant(Uuid, ModelName, ModelAccess),
    /// A charm that the model uses.
    Charm(Digest),
    /// The contents of an application's resources, the former ones included.
    Contents(Vec<Digest>),
    /// The ids of the users who were granted an offer.
    Offered(Vec<Uuid>),
}

/// Returns the part that the entity under a key adds, if it adds one.
pub(super) fn part(state: &ModelState, key: &ModelKey) -> Option<Part> {
    let model = state.model();
    match key {
        // A model that comes has its name already; one that has moved has left it.
        ModelKey::Model => (!state.is_remains() && !state.has_moved())
            .then(|| Part::Name(model.name.clone(), model.owner.clone())),
        ModelKey::Grant(user) => {
            let grant = state.grant(user)?;
            Some(Part::Grant(grant.user_uuid, model.name.clone(), grant.access))
        }
        ModelKey::Charm(digest) => state.charm(digest).map(|charm| Part::Charm(charm.digest)),
        ModelKey::Application(name) => {
            let attached = state.application(name)?.resources.values();
            let contents: Vec<Digest> = attached.flat_map(AttachedResource::contents).collect();
            (!contents.is_empty()).then_some(Part::Contents(contents))
        }
        ModelKey::Offer(name) => {
            let users: Vec<Uuid> = state.offer(name)?.grants.values().map(|grant| grant.user_uuid).collect();
            (!users.is_empty()).then_some(Part::Offered(users))
        }
        _ => None,
    }
}

impl ModelIndex {
    /// Replaces the part of an entity by its new part.
    pub(super) fn update(&mut self, model: ModelUuid, old: Option<Part>, new: Option<Part>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.remove(model, old);
        }
        if let Some(new) = new {
            self.add(model, new);
        }
    }

    /// Removes all parts of a model that is removed with its entities.
    pub(super) fn forget(&mut self, model: ModelUuid, state: &ModelState) {
        for key in state.keys().chain([ModelKey::Model]) {
            self.update(model, part(state, &key), None);
        }
    }

    fn add(&mut self, model: ModelUuid, part: Part) {
        match part {
            Part::Name(name, owner) => self.named.insert(name, (owner, model)),
            Part::Grant(user, name, access) => {
                self.granted.insert(user, model);
                self.granted_by_name.insert((user, name), model);
                if access >= ModelAccess::Write {
                    self.writable.insert(user, model);
                }
            }
            Part::Charm(digest) => self.using_charm.insert(digest, model),
            Part::Contents(digests) => {
                digests.into_iter().for_each(|digest| self.with_content.insert(digest, model));
            }
            Part::Offered(users) => users.into_iter().for_each(|user| self.offered.insert(user, model)),
        }
    }

    fn remove(&mut self, model: ModelUuid, part: Part) {
        match part {
            Part::Name(name, owner) => self.named.remove(&name, &(owner, model)),
            Part::Grant(user, name, _) => {
                self.granted.remove(&user, &model);
                self.granted_by_name.remove(&(user, name), &model);
                self.writable.remove(&user, &model);
            }
            Part::Charm(digest) => self.using_charm.remove(&digest, &model),
            Part::Contents(digests) => {
                digests.iter().for_each(|digest| self.with_content.remove(digest, &model));
            }
            Part::Offered(users) => users.iter().for_each(|user| self.offered.remove(user, &model)),
        }
    }
}

impl Root {
    /// Returns the model with this owner and name.
    pub fn model_named(&self, owner: &UserName, name: &ModelName) -> Option<&Arc<ModelState>> {
        let first = (owner.clone(), ModelUuid(Uuid::nil()));
        let (found, uuid) = self.model_index.named.from(name, first).next()?;
        if found == owner { self.model(uuid) } else { None }
    }

    /// Returns true if an owner has a model with this name, or one that is coming from another controller.
    pub(crate) fn is_name_taken(&self, owner: &UserName, name: &ModelName) -> bool {
        let first = (owner.clone(), ModelUuid(Uuid::nil()));
        self.model_index.named.from(name, first).next().is_some_and(|(found, _)| found == owner)
    }

    /// Returns the models with a name, by owner.
    pub fn models_named(&self, name: &ModelName) -> impl Iterator<Item = &Arc<ModelState>> {
        self.model_index.named.get(name).filter_map(|(_, uuid)| self.model(uuid))
    }

    /// Returns the models with a name that a user was granted.
    pub fn granted_models_named(
        &self,
        user: &User,
        name: &ModelName,
    ) -> impl Iterator<Item = &Arc<ModelState>> {
        let models = self.model_index.granted_by_name.get(&(user.uuid, name.clone()));
        models.filter_map(|uuid| self.model(uuid))
    }

    /// Returns the models that a user was granted.
    pub(crate) fn granted_models(&self, user: &User) -> impl Iterator<Item = &Arc<ModelState>> {
        let models = self.model_index.granted.get(&user.uuid);
        models.filter_map(|uuid| self.model(uuid)).inspect(|_| looks::note())
    }

    /// Returns the models with an offer that a user was granted.
    pub(crate) fn models_offering_to(&self, user: &User) -> impl Iterator<Item = &Arc<ModelState>> {
        let models = self.model_index.offered.values().get(&user.uuid);
        models.filter_map(|uuid| self.model(uuid)).inspect(|_| looks::note())
    }

    /// Returns true if a user was granted write access to some model, or more.
    pub(crate) fn was_granted_a_write(&self, user: &User) -> bool {
        self.model_index.writable.get(&user.uuid).any(|uuid| self.model(uuid).is_some())
    }

    /// Returns the models that use a charm, for an application, for a unit that still runs it, or as a former charm of an
    /// application. They include the remains of destroyed models.
    pub(crate) fn models_using(&self, charm: &Digest) -> impl Iterator<Item = &Arc<ModelState>> {
        self.model_index.using_charm.get(charm).filter_map(|uuid| self.models.get(uuid))
    }

    /// Returns the models that a user was granted, of those that use a charm.
    pub(crate) fn granted_models_using(
        &self,
        user: &User,
        charm: &Digest,
    ) -> impl Iterator<Item = &Arc<ModelState>> {
        let ModelIndex { granted, using_charm, .. } = &self.model_index;
        granted.common(&user.uuid, using_charm, charm).filter_map(|uuid| self.models.get(uuid))
    }

    /// Returns the models that a user was granted, of those with a resource of a content, or that had one.
    pub(crate) fn granted_models_with(
        &self,
        user: &User,
        content: &Digest,
    ) -> impl Iterator<Item = &Arc<ModelState>> {
        let ModelIndex { granted, with_content, .. } = &self.model_index;
        granted.common(&user.uuid, with_content.values(), content).filter_map(|uuid| self.models.get(uuid))
    }

    /// Returns true if a model uses a charm: for an application, for a unit that still runs it, or as a former charm of an
    /// application.
    pub fn uses_charm(&self, digest: &Digest) -> bool {
        self.model_index.using_charm.len(digest) > 0
    }

    /// Returns true if a content is attached to a resource, or is kept because it was.
    pub fn is_attached(&self, content: &Digest) -> bool {
        self.model_index.with_content.values().len(content) > 0
    }

    /// Returns true if a content is attached to a resource, or is kept because it was, or is a part of another content, or
    /// is the program that controllers and agents are to run.
    pub fn uses_content(&self, content: &Digest) -> bool {
        let target = self.controller().and_then(|controller| controller.program.as_ref());
        self.is_attached(content)
            || self.is_part(content)
            || target.is_some_and(|target| target.offer.digest == *content)
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        AgentName, Timestamp,
        access::ModelAccess,
        command::{Caller, Command},
        offer::OfferAccess,
    };

    use super::super::large::{FEW, Large, MODELS};
    use crate::{
        Changes, IdentityCommand, Input, agent_summaries,
        entity::{EntityKey, Offer, OfferGrant, Registration},
        models_with_offers, readable_models,
    };

    use super::*;

    /// A controller with many models, of which the user `jane` was granted few, and offers in a few others.
    fn with_jane() -> (Large, Caller) {
        let mut controller = Large::new();
        let (name, admin) = ("jane".parse::<UserName>().unwrap(), Caller::User("admin".parse().unwrap()));
        let registration = Registration { token: Digest::of(b"jane"), expires_at: Timestamp::MAX };
        let add = IdentityCommand::AddUser { name: name.clone(), display_name: String::new(), registration };
        controller.ask(&admin, &Input::Identity(add)).unwrap();
        let models: Vec<ModelUuid> = controller.root.models().map(|(uuid, _)| *uuid).collect();
        for model in &models[..FEW] {
            let grant = Command::GrantModel { user: name.clone(), access: ModelAccess::Read };
            controller.ask(&admin, &Input::Model(*model, grant)).unwrap();
        }
        let user_uuid = controller.root.user(&name).unwrap().uuid;
        let mut changes = Changes::default();
        for model in &models[FEW..2 * FEW] {
            for offer in ["db", "cache"] {
                let granted = OfferGrant { user_uuid, access: OfferAccess::Read };
                let offer = Offer {
                    name: offer.parse().unwrap(),
                    uuid: periapt_host_api::OfferUuid(Uuid::from_u128(7)),
                    application: offer.parse().unwrap(),
                    endpoints: Default::default(),
                    description: String::new(),
                    created_at: Timestamp::UNIX_EPOCH,
                    grants: [(name.clone(), granted)].into(),
                };
                let key = EntityKey::InModel(*model, ModelKey::Offer(offer.name.clone()));
                changes.puts.insert(key, Some(offer.into()));
            }
        }
        controller.root = controller.root.apply(&changes, periapt_host_api::Revision(2));
        (controller, Caller::User(name))
    }

    #[test]
    fn a_users_lists_cost_looks_at_the_users_own_models_however_many_others_there_are() {
        let (controller, jane) = with_jane();
        let root = &controller.root;
        let admin = Caller::User("admin".parse().unwrap());
        let models = |caller| looks::count(|| drop(readable_models(root, caller).collect::<Vec<_>>()));
        assert_eq!((models(&jane), models(&admin)), (FEW, MODELS), "models");
        let offers = |caller| looks::count(|| drop(models_with_offers(root, caller)));
        assert_eq!((offers(&jane), offers(&admin)), (2 * FEW, MODELS), "models with offers");
        let now = (controller.env.now, controller.env.lease_now_ms);
        let agents = looks::count(|| drop(agent_summaries(root, now, readable_models(root, &jane))));
        assert_eq!(agents, FEW, "agents");
        let stranger = Caller::Agent(AgentName::new("few").unwrap());
        assert_eq!(readable_models(root, &stranger).count(), 0);
    }
}
