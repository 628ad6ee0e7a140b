//! What operators set: options of charms, settings of models, constraints, and what a hook may use.

pub mod budget;
pub mod constraints;
pub mod settings;
