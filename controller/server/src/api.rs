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
mod models;
mod offers;
mod openapi;
mod places;
mod query;
mod range;
mod records;
mod resources;
mod routes;
mod secrets;
mod serve;
mod streams;
mod uploads;

pub use openapi::openapi;
pub(crate) use places::Places;
pub(crate) use routes::router;
pub(crate) use serve::{Patience, serve};
pub(crate) use uploads::{Bounds, Uploads};
