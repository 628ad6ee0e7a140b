//! Offers, remote applications and cross-model relations.

use std::sync::Arc;

use periapt_host_api::{ApplicationName, OfferUuid, status::Life};

use super::ModelState;
use crate::entity::{CrossModelId, Offer, Relation, RemoteApplication};

impl ModelState {
    /// Returns an offer by its name.
    pub fn offer(&self, name: &ApplicationName) -> Option<&Arc<Offer>> {
        self.tables.offers.get(name)
    }

    /// Returns an offer by its id.
    pub fn offer_with(&self, uuid: &OfferUuid) -> Option<&Arc<Offer>> {
        self.offers().find(|offer| offer.uuid == *uuid)
    }

    /// Returns the offers, by name.
    pub fn offers(&self) -> impl Iterator<Item = &Arc<Offer>> {
        self.tables.offers.values()
    }

    /// Returns the offers of an application.
    pub fn offers_of<'a>(&'a self, application: &'a ApplicationName) -> impl Iterator<Item = &'a Arc<Offer>> {
        self.offers().filter(move |offer| offer.application == *application)
    }

    /// Returns the relations to an offer of this model, by number.
    pub fn connections<'a>(&'a self, offer: &'a Offer) -> impl Iterator<Item = &'a Arc<Relation>> {
        self.relations_of(&offer.application).filter(move |relation| {
            relation.life != Life::Dead
                && relation.cross.as_ref().is_some_and(|cross| cross.offer == offer.uuid)
        })
    }

    /// Returns an application of another model.
    pub fn remote_application(&self, name: &ApplicationName) -> Option<&Arc<RemoteApplication>> {
        self.tables.remotes.get(name)
    }

    /// Returns the applications of other models that this model knows, by name.
    pub fn remote_applications(&self) -> impl Iterator<Item = &Arc<RemoteApplication>> {
        self.tables.remotes.values()
    }

    /// Returns this model's copy of a cross-model relation. A dead relation, kept only for units that have yet to run
    /// its last hooks, does not count.
    pub(crate) fn crossing(&self, id: &CrossModelId) -> Option<&Arc<Relation>> {
        let relation = self.relation(self.derived.crossings.get(id).next()?)?;
        (relation.life != Life::Dead).then_some(relation)
    }

    /// Returns the number of this model's own units in a relation's scope.
    pub fn own_member_count(&self, relation: &Relation) -> usize {
        match &relation.cross {
            None => self.member_count(&relation.id),
            Some(cross) => {
                let members = self.members(&relation.id);
                members.filter(|(unit, _)| *unit.application() != cross.remote).count()
            }
        }
    }
}
