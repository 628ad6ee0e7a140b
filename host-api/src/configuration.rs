//! Configuration by operators: charm options, model settings, constraints and hook budgets.

pub mod budget;
pub mod constraints;
pub mod settings;
