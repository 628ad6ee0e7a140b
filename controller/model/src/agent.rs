//! Agents, and what each must know.

pub(crate) mod assignments;
pub(crate) mod entity;
pub(crate) mod register;
