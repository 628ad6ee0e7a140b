//! The HTTP/2 API: connections, identities, routes.

mod access;
mod actions;
mod admission;
mod agents;
mod audit;
mod backup;
mod blob;
mod body;
mod bulk;
mod caller;
mod charms;
mod connection;
mod controller;
mod failure;
mod find;
mod guard;
mod issuer_login;
mod join;
mod members;
mod metrics;
mod models;
mod offers;
mod openapi;
mod query;
mod range;
mod records;
mod request;
mod resources;
mod routes;
mod secrets;
mod seen;
mod serve;
mod sessions;
mod spooled;
mod streams;
#[cfg(test)]
pub(crate) mod test_state;
mod trace;
mod users;
mod workload_logs;

pub use access::{RouteRight, access_document, route_rights};
pub(crate) use blob::unavailable;
pub(crate) use guard::Guards;
pub use openapi::openapi;
pub(crate) use routes::router;
pub(crate) use serve::{ConnectionTimeouts, Listener, serve};
