//! Bounds on clients: the number of their connections and open streams, their running uploads, and the requests
//! of strangers.

mod connections;
mod slots;
mod streams;
mod uploads;

pub(crate) use self::{
    connections::{ConnectionPermit, Connections},
    slots::{Slot, Slots},
    streams::{PatientStream, StreamLimits, StreamOf, StreamPermit},
    uploads::{Bounds, Upload, Uploads},
};
