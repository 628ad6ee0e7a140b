//! What clients may hold at a time: streams that are open, uploads that are under way.

mod streams;
mod uploads;

pub(crate) use self::{
    streams::{StreamLimits, StreamOf, StreamPermit},
    uploads::{Bounds, Upload, Uploads},
};
