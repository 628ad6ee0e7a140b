//! The table of all routes. The router and the OpenAPI document are made from it.

mod actions;
mod agents;
mod charms;
mod controller;
mod members;
mod models;
mod operation;
mod query;
mod resources;
mod users;

use std::{collections::HashMap, sync::Arc};

use axum::Router;
use http::Method;
use periapt_model::Right;

pub(crate) use self::operation::{Content, Operation, Parameter, Repeats, Route};
use crate::{
    api::{
        admission::{Admission, admit},
        failure,
        guard::Guards,
        seen::Strangers,
        trace,
    },
    state::ControllerState,
};

/// Returns all routes of the API.
pub(crate) fn table() -> Vec<Route> {
    let mut table = controller::routes();
    table.extend(models::routes());
    table.extend(actions::routes());
    table.extend(charms::routes());
    table.extend(resources::routes());
    table.extend(agents::routes());
    table.extend(members::routes());
    table.extend(users::routes());
    table
}

/// Returns the service that answers requests.
pub(crate) fn router(state: ControllerState, guards: Guards) -> Router {
    let (durable, clock, refusals) = (state.durable.clone(), state.clock.clone(), state.refusals.clone());
    let mut rights: HashMap<&'static str, Vec<(Method, Right)>> = HashMap::new();
    let mut router = Router::new();
    for route in table() {
        let offered = route.operations.iter().map(|operation| (operation.method.clone(), operation.right));
        rights.insert(route.path, offered.collect());
        router = router.route(route.path, route.handlers);
    }
    let freshness = state.freshness.clone();
    let strangers = Strangers::default();
    let admission = Arc::new(Admission { rights, durable, clock, guards, refusals, freshness, strangers });
    router
        .route_layer(axum::middleware::from_fn_with_state(admission, admit))
        .layer(axum::middleware::map_response(failure::unify))
        .layer(axum::middleware::from_fn(trace::request))
        .with_state(state)
}
