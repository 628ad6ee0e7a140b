//! Resources: their upload, attachment and download by units.

pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod entity;
