//! Applications, their units, relations and spaces.

pub(crate) mod bundle;
pub(crate) mod config;
pub(crate) mod constraints;
pub(crate) mod deploy;
pub(crate) mod expose;
pub(crate) mod integrate;
pub(crate) mod refresh;
pub(crate) mod spaces;
pub(crate) mod suspend;
pub(crate) mod units;
