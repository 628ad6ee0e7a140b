//! Agents, their registration and their assignments.

pub(crate) mod assignments;
pub(crate) mod enrolment;
pub(crate) mod entity;
mod joining;
pub(crate) mod pool;
pub(crate) mod register;
