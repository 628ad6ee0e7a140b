//! What clients may hold at a time: streams that are open, uploads that are under way.

mod places;
mod uploads;

pub(crate) use self::{
    places::{Place, Places, StreamOf},
    uploads::{Bounds, Upload, Uploads},
};
