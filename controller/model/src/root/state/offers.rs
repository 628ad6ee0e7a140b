//! What has to do with other models.

use std::sync::Arc;

use periapt_host_api::{ApplicationName, OfferUuid, status::Life};

use super::ModelState;
use crate::entity::{CrossId, Offer, Relation, RemoteApplication};

impl ModelState {
    /// An offer.
    pub fn offer(&self, name: &ApplicationName) -> Option<&Arc<Offer>> {
        self.tables.offers.get(name)
    }

    /// An offer, whatever its name.
    pub fn offer_with(&self, uuid: &OfferUuid) -> Option<&Arc<Offer>> {
        self.offers().find(|offer| offer.uuid == *uuid)
    }

    /// The offers, by name.
    pub fn offers(&self) -> impl Iterator<Item = &Arc<Offer>> {
        self.tables.offers.values()
    }

    /// The offers of an application.
    pub fn offers_of<'a>(&'a self, application: &'a ApplicationName) -> impl Iterator<Item = &'a Arc<Offer>> {
        self.offers().filter(move |offer| offer.application == *application)
    }

    /// The relations with an offer of this model, by number.
    pub fn connections<'a>(&'a self, offer: &'a Offer) -> impl Iterator<Item = &'a Arc<Relation>> {
        self.relations_of(&offer.application).filter(move |relation| {
            relation.life != Life::Dead
                && relation.cross.as_ref().is_some_and(|cross| cross.offer == offer.uuid)
        })
    }

    /// An application of another model.
    pub fn remote_application(&self, name: &ApplicationName) -> Option<&Arc<RemoteApplication>> {
        self.tables.remotes.get(name)
    }

    /// The applications of other models that are known here, by name.
    pub fn remote_applications(&self) -> impl Iterator<Item = &Arc<RemoteApplication>> {
        self.tables.remotes.values()
    }

    /// The relation that is the one across models here; none if it is gone, but for units that have yet to run its
    /// last hooks.
    pub(crate) fn crossing(&self, id: &CrossId) -> Option<&Arc<Relation>> {
        let relation = self.relation(self.derived.crossings.get(id).next()?)?;
        (relation.life != Life::Dead).then_some(relation)
    }

    /// How many units of this model are in a relation's scope.
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
