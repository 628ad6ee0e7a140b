//! Bounds on clients: the number of their connections and open streams, and their running uploads.

mod connections;
mod streams;
mod uploads;

pub(crate) use self::{
    connections::{ConnectionPermit, Connections},
    streams::{StreamLimits, StreamOf, StreamPermit},
    uploads::{Bounds, Upload, Uploads},
};
