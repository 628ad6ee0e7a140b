//! Relations in status.

use periapt_host_api::{
    relation::Scope,
    status::{Life, RelationStatus},
};

use crate::{
    entity::{Relation, RelationProgress},
    life,
    root::ModelState,
};

pub(super) fn status(state: &ModelState, relation: &Relation) -> RelationStatus {
    let kind = match relation.scope {
        _ if relation.is_peer() => "peer",
        Scope::Container => "subordinate",
        Scope::Global => "regular",
    };
    let status = match (relation.life, relation.suspended, relation.progress) {
        (Life::Dying | Life::Dead, ..) => "dying",
        (Life::Alive, true, _) => "suspended",
        (Life::Alive, false, RelationProgress::Joining) => "joining",
        (Life::Alive, false, RelationProgress::Joined) => "joined",
    };
    let end = |position: Option<&periapt_host_api::relation::Endpoint>| {
        position.map(ToString::to_string).unwrap_or_default()
    };
    RelationStatus {
        id: relation.id.0,
        provider: end(relation.endpoints.first()),
        requirer: end(relation.endpoints.last()),
        interface: relation.endpoints.first().map(|end| end.interface.to_string()).unwrap_or_default(),
        kind: kind.to_owned(),
        status: status.to_owned(),
        waits_for: life::relation::waits_for(state, relation),
    }
}
