//! The status of relations.

use periapt_host_api::{relation::Scope, status::RelationStatus};

use super::life;
use crate::{entity::Relation, root::ModelState};

pub(crate) fn status(state: &ModelState, relation: &Relation) -> RelationStatus {
    let kind = match relation.scope {
        _ if relation.is_peer() => "peer",
        Scope::Container => "subordinate",
        Scope::Global => "regular",
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
        status: relation.state().as_str().to_owned(),
        message: relation.suspended_reason.clone(),
        waits_for: life::waits_for(state, relation),
    }
}
