//! The interface `relations`.

use periapt_host_api::RelationId;
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::relations::{Bag, OwnBag},
    host_call,
    types::Error,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "ids", |context, _, (endpoint,): (String,)| {
        context.relation_ids(&endpoint).into_iter().map(|id| id.0).collect::<Vec<u32>>()
    })?;
    host_call::link(interface, "endpoint", |context, _, (relation,): (u32,)| {
        let endpoint = context.relation_endpoint(RelationId(relation));
        endpoint.map(|endpoint| endpoint.to_string()).map_err(Error::from)
    })?;
    host_call::link(interface, "remote-application", |context, _, (relation,): (u32,)| {
        let application = context.relation_remote_application(RelationId(relation));
        application.map(|application| application.to_string()).map_err(Error::from)
    })?;
    host_call::link(interface, "members", |context, _, (relation,): (u32,)| {
        let members = context.relation_members(RelationId(relation));
        members.map(|units| units.iter().map(ToString::to_string).collect::<Vec<_>>()).map_err(Error::from)
    })?;
    host_call::link_leader(interface, "get", |context, now, (relation, bag): &(u32, Bag)| {
        let answer = context.relation_get(now, RelationId(*relation), &bag.clone().into());
        answer.map(|bag| {
            bag.map(|settings| settings.into_iter().collect::<Vec<(String, String)>>()).map_err(Error::from)
        })
    })?;
    host_call::link_leader(
        interface,
        "get-value",
        |context, now, (relation, bag, key): &(u32, Bag, String)| {
            let answer = context.relation_get_value(now, RelationId(*relation), &bag.clone().into(), key);
            answer.map(|value| value.map_err(Error::from))
        },
    )?;
    host_call::link_leader(
        interface,
        "set",
        |context, now, (relation, bag, changes): &(u32, OwnBag, Vec<(String, String)>)| {
            let answer = context.relation_set(now, RelationId(*relation), (*bag).into(), changes);
            answer.map(|done| done.map_err(Error::from))
        },
    )
}

impl From<Bag> for periapt_hook::BagSelector {
    fn from(bag: Bag) -> Self {
        match bag {
            Bag::Unit(name) => Self::Unit(name),
            Bag::Application(name) => Self::Application(name),
        }
    }
}

impl From<OwnBag> for periapt_hook::OwnBag {
    fn from(bag: OwnBag) -> Self {
        match bag {
            OwnBag::Unit => Self::Unit,
            OwnBag::Application => Self::Application,
        }
    }
}
