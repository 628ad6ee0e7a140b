//! The keeper's side of the holder: the descriptors that an earlier keeper left, and those that this one hands over
//! (decision 97).

mod link;
mod listeners;

pub(crate) use link::{HeldItem, HolderLink, PodHolder, find_holder, open_holder};
pub(crate) use listeners::HeldListeners;
