//! The HTTP/2 API: connections, identities, routes.

mod actions;
mod agents;
mod blob;
mod body;
mod bulk;
mod caller;
mod charms;
mod controller;
mod failure;
mod metrics;
mod models;
mod offers;
mod openapi;
mod query;
mod range;
mod records;
mod resources;
mod routes;
mod secrets;
mod serve;
mod streams;
mod trace;

pub use openapi::openapi;
pub(crate) use routes::router;
pub(crate) use serve::{ConnectionTimeouts, serve};
