//! Users and their identity: access levels, passwords, tokens and sessions.

pub mod access;
pub mod audit;
pub mod password;
pub mod token;
pub mod user;
