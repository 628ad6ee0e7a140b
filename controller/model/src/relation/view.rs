//! The views of relations and their bags. `view.rs` and `view/follow` decide which runners see them.

use periapt_host_api::{
    UnitMap,
    view::{BagView, Membership, RelationView, RemoteEnd},
};

use crate::entity::{Bag, CrossModelSide, Relation};

impl Relation {
    /// Returns the view of the relation with these members.
    pub(crate) fn view(&self, members: UnitMap<Membership>) -> RelationView {
        RelationView {
            id: self.id,
            endpoints: self.endpoints.clone(),
            scope: self.scope,
            life: self.life,
            suspended: self.suspended,
            state: self.state(),
            state_since: self.state_since.unwrap_or(self.created_at),
            members,
            remote: self.cross.as_ref().map(|cross| RemoteEnd {
                model: cross.other_model(),
                offer: match &cross.side {
                    CrossModelSide::Consumer { url, .. } => Some(url.clone()),
                    CrossModelSide::Offerer { .. } => None,
                },
            }),
            egress: self.egress.clone(),
        }
    }
}

impl Bag {
    /// Returns the view of the bag.
    pub(crate) fn view(&self) -> BagView {
        BagView {
            key: self.key.clone(),
            settings: self.settings.clone(),
            version: self.version,
            container: self.container.clone(),
        }
    }
}
