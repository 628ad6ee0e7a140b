//! What operators ask.

pub(crate) mod action;
pub(crate) mod application;
pub(crate) mod constraints;
pub(crate) mod deploy;
pub(crate) mod endpoints;
pub(crate) mod integrate;
pub(crate) mod kept;
pub(crate) mod machine;
pub(crate) mod model;
pub(crate) mod network;
pub(crate) mod offer;
pub(crate) mod plan;
pub(crate) mod refresh;
pub(crate) mod resource;
pub(crate) mod secret;
pub(crate) mod storage;
pub(crate) mod takeover;
pub(crate) mod unit;
