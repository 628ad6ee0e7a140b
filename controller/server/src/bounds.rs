//! Bounds on clients: the number of their open streams, and their running uploads.

mod streams;
mod uploads;

pub(crate) use self::{
    streams::{StreamLimits, StreamOf, StreamPermit},
    uploads::{Bounds, Upload, Uploads},
};
