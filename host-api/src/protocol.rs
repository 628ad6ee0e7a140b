//! The types of the HTTP API: requests of clients and agents, and the controller's answers.

pub mod agent;
pub mod api;
pub mod backup;
pub mod command;
pub mod container;
pub mod exec_session;
pub mod logs;
pub mod member;
pub mod migration;
pub mod pod;
pub mod problem;
pub mod program;
pub mod status;
pub mod timing;
pub mod trace;
pub mod view;
pub mod workload_log;
